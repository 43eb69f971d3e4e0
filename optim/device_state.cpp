// Steps under capture, learning rates in device memory, and float32 copies of half parameters.
#include <brigade/optim/detail/device_state.h>

#include <brigade/core/device_runtime.h>
#include <brigade/core/factory.h>
#include <brigade/kernels/elementwise.h>

#include <algorithm>
#include <utility>

namespace brigade::optim::detail {

// --- Asks the device whether it captures, and throws the errors of steps that cannot be captured.

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
      "make it again. Run a step that moves the same parameters before the capture, outside of it",
      optimizer, describe(parameter));
}

// --- Writes a learning rate only when it changes.

Tensor DeviceLr::beside(const Tensor& parameter, double lr, SourceLocation where) {
  const auto found =
      std::ranges::find_if(copies_, [&](const Copy& copy) { return copy.number.device() == parameter.device(); });
  if (found != copies_.end() && found->value == lr) return found->number;
  if (is_captured(parameter)) {
    throw ValueError(
        where,
        "step(): the learning rate {} is not on the device yet, and what a capture writes there each replay "
        "writes again. Take a step outside before the capture, or change the rate by set_lr()",
        lr);
  }
  if (found == copies_.end())
    return copies_.emplace_back(Copy{full({}, lr, {kFloat64, parameter.device()}), lr}).number;
  kernels::fill(found->number, lr);
  found->value = lr;
  return found->number;
}

void DeviceLr::set(double lr) {
  for (Copy& copy : copies_) {
    kernels::fill(copy.number, lr);
    copy.value = lr;
  }
}

// --- Makes the float32 copies of half parameters, and keeps copies and parameters consistent.

std::vector<Tensor> MasterWeights::of(std::span<const Tensor> parameters) {
  std::vector<Tensor> result;
  result.reserve(parameters.size());
  for (const Tensor& parameter : parameters) {
    Copy& copy = copies_[parameter.impl()];
    if (!copy.values.defined()) {
      copy.values = kernels::contiguous(kernels::cast(parameter, kFloat32));
    } else if (copy.version != parameter.version()) {
      const Tensor rounded = kernels::cast(copy.values, parameter.dtype());
      const Tensor same = kernels::compare(rounded, parameter, kernels::CompareOp::Equal);
      copy.values = kernels::where(same, copy.values, kernels::cast(parameter, kFloat32));
    }
    result.push_back(copy.values);
  }
  return result;
}

void MasterWeights::round_into(std::span<const Tensor> parameters) const {
  for (const Tensor& parameter : parameters)
    kernels::copy(parameter, copies_.at(parameter.impl()).values);
}

void MasterWeights::settle(const Tensor& parameter) { copies_.at(parameter.impl()).version = parameter.version(); }

Tensor MasterWeights::find(const Tensor& parameter) const {
  const auto found = copies_.find(parameter.impl());
  return found == copies_.end() ? Tensor() : found->second.values;
}

void MasterWeights::put(const Tensor& parameter, Tensor copy) { copies_[parameter.impl()] = {std::move(copy)}; }

}  // namespace brigade::optim::detail
