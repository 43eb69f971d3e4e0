// Common parts of the stand-ins for cuBLASLt and cuDNN. A stand-in implements the library interface required by
// kernels/cuda/detail with CPU code, queued on the stream that the library would use, and enforces the library's rules.
#pragma once

#include <simt/error.h>
#include <simt/runtime.h>

#include <cstdint>
#include <cstring>
#include <string>

namespace brigade::test {

// Creating a library handle allocates memory.
struct LibraryHandle {
  LibraryHandle() {
    if (cudaMalloc(&memory, 4096) != cudaSuccess) throw simt::Error("a library's handle got no memory");
  }
  void* memory = nullptr;
};

inline void require(bool condition, const std::string& what) {
  if (!condition) throw simt::Error("stand-in for a library: " + what);
}

// Requires that `data` is memory of the current device and that its address is a multiple of `alignment`.
inline void require_on_device(const void* data, size_t alignment, const char* what) {
  int device = 0;
  cudaGetDevice(&device);
  cudaPointerAttributes attributes{};
  cudaPointerGetAttributes(&attributes, data);
  require(attributes.type == cudaMemoryTypeDevice && attributes.device == device,
          std::string(what) + " is not memory of the current device");
  require(reinterpret_cast<uintptr_t>(data) % alignment == 0, std::string(what) + " is less aligned than was said");
}

// Queues the work of a call. The workspace is overwritten before and after it, so that sharing it with other work
// shows.
template <class Run>
void queue(cudaStream_t stream, void* workspace, size_t workspace_bytes, Run run) {
  const cudaError_t code = simt::enqueue(stream, [=] {
    if (workspace_bytes > 0) std::memset(workspace, 0x7f, workspace_bytes);
    run();
    if (workspace_bytes > 0) std::memset(workspace, 0x7f, workspace_bytes);
  });
  require(code == cudaSuccess, cudaGetErrorString(code));
}

}  // namespace brigade::test
