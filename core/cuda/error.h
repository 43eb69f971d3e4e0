// Errors of CUDA: of its runtime, and those that kernels find in data.
#pragma once

#include <brigade/core/error.h>
#include <brigade/core/index_error.h>

#include <cuda_runtime_api.h>

#include <cstdint>

namespace brigade::cuda {

// --- Errors of the CUDA runtime: which call, what CUDA says, which kernel was launched last.

class CudaError : public DeviceError {
 public:
  template <class... Args>
  CudaError(cudaError_t code, std::source_location where,
            brigade::detail::ErrorText<std::type_identity_t<Args>...> text, const Args&... args)
      : DeviceError(where, text, args...), code_(code) {}
  cudaError_t code() const noexcept { return code_; }

 private:
  cudaError_t code_;
};

// Records the latest kernel launch of this thread: an error of a kernel surfaces in a later call.
void note_launch(const char* kernel, std::source_location where) noexcept;

[[noreturn]] void throw_error(cudaError_t code, const char* call, std::source_location where);
//   check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
inline void check(cudaError_t code, const char* call, std::source_location where = std::source_location::current()) {
  if (code != cudaSuccess) [[unlikely]]
    throw_error(code, call, where);
}

// --- Errors that kernels find in data: an index out of the range of rows, a target out of the range of classes.
//
// The host does not wait for a kernel to learn of such errors. Each device has a report in page-locked memory. The
// first thread that meets a bad index writes the report; the host reads it where it synchronizes anyway
// (Stream::synchronize, cuda::synchronize, copies to and from the CPU) and throws there. Until then the kernels skip
// the bad index. This costs a launch one pointer among its parameters, and a synchronization one read of host memory.
//
// Each counter of the report has one writer (`claimed`: device threads by compare-and-swap), so nothing is ever reset
// from two sides: a thread may write when claimed == thrown, and announces that by raising `claimed`; its report is
// complete when `written` has the same value; the host has thrown it when `thrown` has. The report is never freed, and
// a kernel that was captured into a graph keeps reporting at each replay.

struct IndexReport {
  unsigned claimed;
  unsigned written;
  unsigned thrown;
  const IndexRole* role;
  int64_t index, position, count;
  std::source_location where;  // the user's call
};

// The report of a device; made at the first call, even while a stream is being captured.
IndexReport* index_report(int device);

// Throws IndexError if a kernel on the device has reported one that was not thrown yet: names the
// operation, the position, the value and the user's line, and says that it was found late.
void throw_reported(int device);

// Called after the launch of a kernel that reports. With CUDA_LAUNCH_BLOCKING=1 in the environment
// it waits for the current stream and so throws within the call at fault; otherwise it does
// nothing.
void throw_reported_if_blocking(int device);

}  // namespace brigade::cuda
