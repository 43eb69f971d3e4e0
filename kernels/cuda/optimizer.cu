// CUDA kernels of optimizer.h: SGD and Adam, Adam's clock, the loss scale.
#include <brigade/kernels/optimizer.h>

#include <brigade/kernels/common/optimizer.h>
#include <brigade/kernels/common/optimizer_math.h>
#include <brigade/kernels/cuda/detail/launch.h>
#include <brigade/kernels/cuda/detail/update_rows.h>

namespace brigade::kernels {

// --- CUDA kernels of optimizer.h.

namespace {

void foreach_sgd_step_cuda(std::span<const Tensor> params, std::span<const Tensor> grads,
                           std::span<const Tensor> momentum_buffers, const SgdParams& s) {
  check_foreach_sgd(params, grads, momentum_buffers, s);
  visit_floating(params.front().dtype(), "sgd step", [&]<class T>() {
    using C = compute_type<T>;
    if (momentum_buffers.empty()) {
      cuda::update_rows<T>("sgd_step", {params, grads}, SgdUpdate<C, false>(s));
    } else {
      cuda::update_rows<T>("sgd_step", {params, grads, momentum_buffers}, SgdUpdate<C, true>(s));
    }
  });
}

void foreach_adam_step_cuda(std::span<const Tensor> params, std::span<const Tensor> grads,
                            std::span<const Tensor> exp_avgs, std::span<const Tensor> exp_avg_sqs,
                            std::span<const Tensor> max_exp_avg_sqs, const AdamParams& a) {
  check_foreach_adam(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, a);
  visit_floating(params.front().dtype(), "adam step", [&]<class T>() {
    using C = compute_type<T>;
    if (max_exp_avg_sqs.empty()) {
      cuda::update_rows<T>("adam_step", {params, grads, exp_avgs, exp_avg_sqs}, AdamUpdate<C, false>(a));
    } else {
      cuda::update_rows<T>("adam_step", {params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs},
                           AdamUpdate<C, true>(a));
    }
  });
}

const AddKernel add_foreach_sgd_step(foreach_sgd_step, kCUDA, &foreach_sgd_step_cuda);
const AddKernel add_foreach_adam_step(foreach_adam_step, kCUDA, &foreach_adam_step_cuda);

}  // namespace

// --- CUDA kernels of Adam's clock: a single thread.

namespace {

__global__ void advance_adam_clock_kernel(AdamClockAdvance advance) { advance(); }

void advance_adam_clock_cuda(const Tensor& clock, const Tensor& found_inf, double beta1, double beta2) {
  cuda::launch({"advance_adam_clock", 1, 1}, clock.device(), &advance_adam_clock_kernel,
               adam_clock_advance(clock, found_inf, beta1, beta2));
}

const AddKernel add_advance_adam_clock(advance_adam_clock, kCUDA, &advance_adam_clock_cuda);

}  // namespace

// --- CUDA kernels of the loss scale: a single thread.

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
