// Errors of the CUDA runtime: which call, what CUDA says, which kernel was launched last.
#pragma once

#include <brigade/core/error.h>

#include <cuda_runtime_api.h>

namespace brigade::cuda {

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

}  // namespace brigade::cuda
