// Writes a learning rate only when it changes.
#include <brigade/core/factory.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/optim/detail/capture.h>
#include <brigade/optim/detail/device_lr.h>

#include <algorithm>

namespace brigade::optim::detail {

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

}  // namespace brigade::optim::detail
