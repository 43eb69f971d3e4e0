// Asks the device whether it captures, and throws the errors of steps that cannot be captured.
#include <brigade/core/device_runtime.h>
#include <brigade/optim/detail/capture.h>

namespace brigade::optim::detail {

bool is_captured(const Tensor& parameter) {
  const Device device = parameter.device();
  return device.type != kCPU && device_runtime(device).is_capturing(device.index);
}

void throw_counts_on_host(const std::string& optimizer, bool could_be_capturable, SourceLocation where) {
  throw ValueError(where,
                   "Attempting CUDA graph capture of step() for an instance of {} but param_groups' capturable is "
                   "False: the count of its steps, which they depend on, is kept by the host, and would be the same in "
                   "each replay. {}",
                   optimizer,
                   could_be_capturable ? "Set .capturable = true, so that the device counts"
                                       : "Capture a step of SGD, or of Adam or AdamW with .capturable = true, or call "
                                         "this step() between replays");
}

void throw_first_in_capture(const std::string& optimizer, const Tensor& parameter, SourceLocation where) {
  throw ValueError(
      where,
      "{}.step(): a step that makes state for a parameter ({}) cannot be captured, since each replay would "
      "make it anew. Run a step that moves the same parameters before the capture, outside of it",
      optimizer, describe(parameter));
}

}  // namespace brigade::optim::detail
