// What the stand-ins for cuBLASLt and cuDNN share. They answer the functions that a library has to offer to
// kernels/cuda/detail with the CPU's code, queued on the stream that the library would use, and hold callers to the
// library's rules.
#pragma once

#include <simt/error.h>
#include <simt/runtime.h>

#include <cstdint>
#include <cstring>
#include <string>

namespace brigade::test {

// A library allocates when its handle is made.
struct LibraryHandle {
  LibraryHandle() {
    if (cudaMalloc(&memory, 4096) != cudaSuccess) throw simt::Error("a library's handle got no memory");
  }
  void* memory = nullptr;
};

inline void require(bool condition, const std::string& what) {
  if (!condition) throw simt::Error("stand-in for a library: " + what);
}

// `data` is memory of the current device, `alignment` divides its address.
inline void require_on_device(const void* data, size_t alignment, const char* what) {
  int device = 0;
  cudaGetDevice(&device);
  cudaPointerAttributes attributes{};
  cudaPointerGetAttributes(&attributes, data);
  require(attributes.type == cudaMemoryTypeDevice && attributes.device == device,
          std::string(what) + " is not memory of the current device");
  require(reinterpret_cast<uintptr_t>(data) % alignment == 0, std::string(what) + " is less aligned than was said");
}

// Queues what a call does. The workspace is written before and after, so that memory in use by others shows.
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
