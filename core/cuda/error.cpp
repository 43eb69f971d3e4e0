// The text of a failed CUDA call: its code in words, what the user may have done, the last launch.
#include <brigade/core/cuda/error.h>

namespace brigade::cuda {
namespace {

struct Launch {
  const char* kernel = nullptr;
  std::source_location where;
};
thread_local Launch last_launch;

// Explains what the user did, if the code alone does not say.
const char* about_capture(cudaError_t code) noexcept {
  switch (code) {
    case cudaErrorStreamCaptureUnsupported:
      return "a CUDA graph is being captured, and nothing may wait for the device meanwhile: no copies to or from the "
             "CPU, no item(), no printing of values, no synchronize(); do it before or after the capture";
    case cudaErrorStreamCaptureInvalidated:
      return "an earlier call broke the capture of a CUDA graph; its own error says why";
    case cudaErrorStreamCaptureUnjoined:
      return "a stream joined the capture of a CUDA graph by waiting for one of its events, and the capturing stream "
             "did not wait for it in the end: record an event there and block the capturing stream on it";
    case cudaErrorStreamCaptureIsolation:
      return "a stream that is captured into a CUDA graph cannot wait for an event that was recorded outside of the "
             "capture: wait for it before";
    case cudaErrorStreamCaptureImplicit:
      return "the default stream was used while a stream that waits for it is captured into a CUDA graph: capture a "
             "stream of Stream::create()";
    case cudaErrorStreamCaptureMerge: return "two CUDA graphs that are being captured cannot wait for each other";
    case cudaErrorCapturedEvent:
      return "the event was recorded in the capture of a CUDA graph: it orders what is captured, and cannot be asked "
             "or waited for by the CPU";
    default: return nullptr;
  }
}

}  // namespace

void note_launch(const char* kernel, std::source_location where) noexcept { last_launch = {kernel, where}; }

void throw_error(cudaError_t code, const char* call, std::source_location where) {
  cudaGetLastError();  // so that an error that is not sticky is reported once
  const char* const text = cudaGetErrorString(code);
  const char* const name = cudaGetErrorName(code);
  if (const char* const reason = about_capture(code))
    throw CudaError(code, where, "{} failed: {} ({}); {}", call, text, name, reason);
  if (!last_launch.kernel) throw CudaError(code, where, "{} failed: {} ({})", call, text, name);
  throw CudaError(code, where,
                  "{} failed: {} ({}); the kernel launched last was {} at {}: with CUDA_LAUNCH_BLOCKING=1 "
                  "an error comes at its own launch",
                  call, text, name, last_launch.kernel, to_string(last_launch.where));
}

}  // namespace brigade::cuda
