#include <brigade/core/cuda/error.h>

namespace brigade::cuda {

namespace {

struct Launch {
  const char* kernel = nullptr;
  std::source_location where;
};
thread_local Launch last_launch;

}  // namespace

void note_launch(const char* kernel, std::source_location where) noexcept { last_launch = {kernel, where}; }

void throw_error(cudaError_t code, const char* call, std::source_location where) {
  cudaGetLastError();  // what is not sticky is told once
  std::string text = std::string(call) + " failed: " + cudaGetErrorString(code) + " (" + cudaGetErrorName(code) + ")";
  if (last_launch.kernel) {
    text += "; the kernel launched last was " + std::string(last_launch.kernel) + " at " +
            to_string(last_launch.where) + ": with CUDA_LAUNCH_BLOCKING=1 an error comes at its own launch";
  }
  throw CudaError(text, code, where);
}

}  // namespace brigade::cuda
