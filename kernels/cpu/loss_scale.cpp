// CPU kernels of the loss scale.
#include <brigade/kernels/optimizer.h>

#include <brigade/kernels/common/optimizer.h>

namespace brigade::kernels {

namespace {

void update_loss_scale_cpu(const Tensor& scale, const Tensor& inverse, const Tensor& growth_tracker,
                           const Tensor& found_inf, const LossScaleRule& rule) {
  loss_scale_update(scale, inverse, growth_tracker, found_inf, rule)();
}

}  // namespace

constinit Kernel<void(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const LossScaleRule&)>
    update_loss_scale("update_loss_scale", &update_loss_scale_cpu);

}  // namespace brigade::kernels
