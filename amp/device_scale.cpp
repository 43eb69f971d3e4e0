// A loss scale that lives on the device.
#include <brigade/amp/detail/device_scale.h>

#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>

namespace brigade::amp::detail {

DeviceScale::DeviceScale(Device device, float scale, int64_t growth_tracker)
    : scale_(full({}, scale, {kFloat32, device})),
      inverse_(full({}, 1.0 / static_cast<double>(scale), {kFloat32, device})),
      growth_tracker_(full({}, static_cast<double>(growth_tracker), {kInt64, device})) {}

void DeviceScale::update(std::span<const Tensor> found, const kernels::LossScaleRule& rule) {
  Tensor any = found.front();
  for (const Tensor& each : found.subspan(1))
    any = kernels::binary(any, each, kernels::BinaryOp::Add);
  kernels::update_loss_scale(scale_, inverse_, growth_tracker_, any, rule);
}

void DeviceScale::set(float scale) {
  kernels::fill(scale_, scale);
  kernels::fill(inverse_, 1.0 / static_cast<double>(scale));
}

void DeviceScale::set_growth_tracker(int64_t iterations) {
  kernels::fill(growth_tracker_, static_cast<double>(iterations));
}

float DeviceScale::read_scale() const { return static_cast<float>(brigade::detail::element_as_double(scale_, 0)); }

int64_t DeviceScale::read_growth_tracker() const {
  return static_cast<int64_t>(brigade::detail::element_as_double(growth_tracker_, 0));
}

}  // namespace brigade::amp::detail
