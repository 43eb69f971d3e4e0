// A loss scale that lives on the device, and the node of a scaled loss.
#include <brigade/amp/detail/device_scale.h>

#include <brigade/autograd/ops/arithmetic.h>
#include <brigade/autograd/record.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>

namespace brigade::amp::detail {

// --- A loss scale that lives on the device.

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

namespace brigade::amp {

// --- The node of a scaled loss.

namespace {

struct LossScaleNode final : autograd::Node {
  Tensor scale;  // a new scale is a new tensor, unless the device keeps it (DeviceScale)
  autograd::ScaleMark mark;

  // With create_graph this records a plain product: a loss made from the gradient later is not
  // scaled yet, and gets a mark of its own when it is.
  void backward(autograd::BackwardContext& context) override { context.set_fitted(0, mul(context.grad(), scale, {})); }
  const autograd::ScaleMark* scale_mark() const noexcept override { return &mark; }
};

}  // namespace

Tensor detail::scaled_loss(const Tensor& loss, const Tensor& scale, const autograd::ScaleMark& mark) {
  const Tensor result = kernels::binary(loss, scale, kernels::BinaryOp::Mul);
  const autograd::OpInfo info{.op = "amp_scale", .where = mark.where};
  if (auto* const node = autograd::record<LossScaleNode>(info, {loss}, result)) {
    node->scale = scale;
    node->mark = mark;
  }
  return result;
}

}  // namespace brigade::amp
