// CUDA kernels of the loss scale: a single thread.
#include <brigade/kernels/optimizer.h>

#include <brigade/kernels/common/optimizer.h>
#include <brigade/kernels/cuda/detail/launch.h>

namespace brigade::kernels {

namespace {

__global__ void update_loss_scale_kernel(LossScaleUpdate update) { update(); }

void update_loss_scale_cuda(const Tensor& scale, const Tensor& inverse, const Tensor& growth_tracker,
                            const Tensor& found_inf, const LossScaleRule& rule) {
  cuda::launch({"update_loss_scale", 1, 1}, scale.device(), &update_loss_scale_kernel,
               loss_scale_update(scale, inverse, growth_tracker, found_inf, rule));
}

const AddKernel add_update_loss_scale(update_loss_scale, kCUDA, &update_loss_scale_cuda);

}  // namespace

}  // namespace brigade::kernels
