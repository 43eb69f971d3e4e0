// Optimizer steps over many parameters, and what they need on the device: Adam's clock, operations on all gradients,
// the loss scale.
#pragma once

#include <brigade/core/compiler.h>
#include <brigade/kernels/kernel.h>

#include <cmath>
#include <cstdint>
#include <span>

namespace brigade::kernels {

// --- Optimizer steps over many parameters, one pass over the memory of each.
//
// The parameters of a call are floating, of one dtype, on one device (DTypeError, DeviceError), each contiguous, with
// state tensors of its shape (ShapeError); all arguments are checked before any parameter changes. On a GPU one launch
// takes 136 of them without state, 105 with momentum, 86 with Adam's moments (73 with amsgrad); the CPU updates them
// one by one.

// g = grad_factor * grad (negated if maximize) + weight_decay * p; buf = momentum * buf + (1 - dampening) * g
// (buf = g on the first step); g = nesterov ? g + momentum * buf : buf; p -= lr * g.
struct SgdParams {
  double lr, momentum, dampening, weight_decay;
  bool nesterov, first_step, maximize;
  double grad_factor = 1;  // undoes a loss scale in the gradients
  // Values in device memory: a further gradient factor (float32), a flag that skips the step unless it is 0 (float32),
  // and a replacement for lr (float64). Each has one element, on the parameters' device, and is read when the step
  // runs; undefined: none.
  Tensor device_factor = {}, found_inf = {}, device_lr = {};
};
// `momentum_buffers`: empty when momentum is 0.
extern Kernel<void(std::span<const Tensor> params, std::span<const Tensor> grads,
                   std::span<const Tensor> momentum_buffers, const SgdParams& options)>
    foreach_sgd_step;

// Adam (Kingma and Ba, arXiv 1412.6980) and AdamW (Loshchilov and Hutter, arXiv 1711.05101) when
// `decoupled_weight_decay`. `step` counts from 1.
struct AdamParams {
  double lr, beta1, beta2, eps, weight_decay;
  int64_t step;
  bool decoupled_weight_decay, maximize;
  double grad_factor = 1;                                     // as in SgdParams,
  Tensor device_factor = {}, found_inf = {}, device_lr = {};  // also these
  Tensor clock = {};  // replaces `step`: on the parameters' device (make_adam_clock), read when the step runs
};
// `max_exp_avg_sqs`: empty unless amsgrad.
extern Kernel<void(std::span<const Tensor> params, std::span<const Tensor> grads, std::span<const Tensor> exp_avgs,
                   std::span<const Tensor> exp_avg_sqs, std::span<const Tensor> max_exp_avg_sqs,
                   const AdamParams& options)>
    foreach_adam_step;

// The step of one parameter. `momentum_buffer` is undefined when momentum is 0, `max_exp_avg_sq` unless amsgrad.
void sgd_step(const Tensor& param, const Tensor& grad, const Tensor& momentum_buffer, const SgdParams& options);
void adam_step(const Tensor& param, const Tensor& grad, const Tensor& exp_avg, const Tensor& exp_avg_sq,
               const Tensor& max_exp_avg_sq, const AdamParams& options);

// --- More optimizer steps, with the rules above: RMSprop, Adagrad, Adadelta, RAdam, NAdam and Lion. In all of them g =
// grad (negated if maximize).

// RMSprop (Hinton, lecture 6e of "Neural Networks for Machine Learning", 2012; centered: Graves, arXiv 1308.0850). g +=
// weight_decay * p; square_avg = alpha * square_avg + (1 - alpha) * g^2; centered: grad_avg is the same average of g,
// and d = sqrt(square_avg - grad_avg^2) + eps instead of sqrt(square_avg) + eps; with momentum, buf = momentum * buf +
// g / d and p -= lr * buf; without momentum, p -= lr * g / d.
struct RmspropParams {
  double lr, alpha, eps, weight_decay, momentum;
  bool maximize;
};
// `grad_avgs`: empty unless centered; `momentum_buffers`: empty when momentum is 0.
extern Kernel<void(std::span<const Tensor> params, std::span<const Tensor> grads, std::span<const Tensor> square_avgs,
                   std::span<const Tensor> grad_avgs, std::span<const Tensor> momentum_buffers,
                   const RmspropParams& options)>
    foreach_rmsprop_step;

// Adagrad (Duchi, Hazan and Singer, JMLR 12, 2011). g += weight_decay * p; sum += g^2;
// p -= lr / (1 + (step - 1) * lr_decay) * g / (sqrt(sum) + eps). `step` counts from 1.
struct AdagradParams {
  double lr, lr_decay, eps, weight_decay;
  int64_t step;
  bool maximize;
};
extern Kernel<void(std::span<const Tensor> params, std::span<const Tensor> grads, std::span<const Tensor> sums,
                   const AdagradParams& options)>
    foreach_adagrad_step;

// Adadelta (Zeiler, arXiv 1212.5701). g += weight_decay * p; square_avg = rho * square_avg + (1 -
// rho) * g^2;
// delta = sqrt(acc_delta + eps) / sqrt(square_avg + eps) * g; acc_delta = rho * acc_delta + (1 -
// rho) * delta^2;
// p -= lr * delta.
struct AdadeltaParams {
  double lr, rho, eps, weight_decay;
  bool maximize;
};
extern Kernel<void(std::span<const Tensor> params, std::span<const Tensor> grads, std::span<const Tensor> square_avgs,
                   std::span<const Tensor> acc_deltas, const AdadeltaParams& options)>
    foreach_adadelta_step;

// RAdam (Liu et al., arXiv 1908.03265): Adam whose step is multiplied by the rectification of its
// variance, and which is not divided by sqrt(exp_avg_sq) in the first steps, where that variance
// has no bound. `step` counts from 1.
struct RAdamParams {
  double lr, beta1, beta2, eps, weight_decay;
  int64_t step;
  bool decoupled_weight_decay, maximize;
};
extern Kernel<void(std::span<const Tensor> params, std::span<const Tensor> grads, std::span<const Tensor> exp_avgs,
                   std::span<const Tensor> exp_avg_sqs, const RAdamParams& options)>
    foreach_radam_step;

// NAdam (Dozat, ICLR 2016 workshop): Adam with Nesterov's momentum, mu(t) = beta1 * (1 - 0.96^(t *
// momentum_decay) / 2). `step` counts from 1; `mu_product` is the product of mu(1) ... mu(step).
struct NAdamParams {
  double lr, beta1, beta2, eps, weight_decay, momentum_decay;
  int64_t step;
  double mu_product;
  bool decoupled_weight_decay, maximize;
};
double nadam_mu(double beta1, double momentum_decay, int64_t step);
extern Kernel<void(std::span<const Tensor> params, std::span<const Tensor> grads, std::span<const Tensor> exp_avgs,
                   std::span<const Tensor> exp_avg_sqs, const NAdamParams& options)>
    foreach_nadam_step;

// Lion (Chen et al., arXiv 2302.06675). p -= lr * weight_decay * p; p -= lr * sign(beta1 * exp_avg + (1 - beta1) * g);
// exp_avg = beta2 * exp_avg + (1 - beta2) * g. The sign of 0 is 0; NaNs propagate.
struct LionParams {
  double lr, beta1, beta2, weight_decay;
  bool maximize;
};
extern Kernel<void(std::span<const Tensor> params, std::span<const Tensor> grads, std::span<const Tensor> exp_avgs,
                   const LionParams& options)>
    foreach_lion_step;

// --- Adam's step counter in device memory: the host cannot count the steps when a captured step is replayed.

// {steps, 1 - beta1^steps, sqrt(1 - beta2^steps)}: float64, contiguous, 3 elements.
Tensor make_adam_clock(int64_t steps, Device device);

// Advances the clock by one step and updates the bias corrections. Does nothing when found_inf (float32, one element,
// on the clock's device; undefined: 0) is not 0. Call it before the optimizer step that reads the clock (AdamParams).
// Throws DTypeError, ShapeError, DeviceError.
extern Kernel<void(const Tensor& clock, const Tensor& found_inf, double beta1, double beta2)> advance_adam_clock;

// --- Operations on many gradients at once: on a GPU one launch takes about 190 tensors.
//
// The tensors of a call are floating, of one dtype, on one device (DTypeError, DeviceError), of any shapes and strides.

// In place: grads[i] *= inv_scale, and found_inf = 1 when any element of any gradient was infinite or NaN on entry;
// else found_inf is unchanged. An inv_scale of 1 only checks. Both are float32 with one element, on the gradients'
// device, without a host synchronization. As torch._amp_foreach_non_finite_check_and_unscale_.
extern Kernel<void(std::span<const Tensor> grads, const Tensor& inv_scale, const Tensor& found_inf)> foreach_unscale;

// The per-tensor term of foreach_norm. The total norm is the sqrt of the sum of all terms, their sum, or the largest.
enum class NormTerm { SumOfSquares, SumOfAbs, MaxAbs };
// out[i] = the term of tensors[i]; 0 for an empty tensor. NaNs propagate. `out`: float64 [tensors.size()], contiguous,
// on the same device (ShapeError, DTypeError). Additions are in double and in a fixed order, so results are bitwise
// reproducible.
extern Kernel<void(std::span<const Tensor> tensors, NormTerm term, const Tensor& out)> foreach_norm;

// In place: tensors[i] *= factor, times the one element of `by` (float32 or float64, on the same device) if defined.
// The factor is rounded to the compute_type, each product is rounded once.
extern Kernel<void(std::span<const Tensor> tensors, double factor, const Tensor& by)> foreach_scale;

// In place: tensors[i] = min(max(tensors[i], -bound), bound), bound >= 0, rounded to their dtype. NaNs propagate.
extern Kernel<void(std::span<const Tensor> tensors, double bound)> foreach_clip;

// --- The update rule of a loss scale in device memory, applied without the host.

struct LossScaleRule {
  double growth_factor, backoff_factor;
  int64_t growth_interval;  // consecutive iterations without an infinity until the scale grows
};

struct LossScale {
  float scale;
  int64_t growth_tracker;  // iterations since the scale last changed
};

// The loss scale after an iteration. If an infinity was found, scale *= backoff_factor and growth_tracker = 0. Else
// growth_tracker += 1; when it reaches growth_interval, scale *= growth_factor unless that would be infinite, and
// growth_tracker = 0. Products are in double, stored as float32, as in torch._amp_update_scale_.
BRIGADE_HOST_DEVICE inline LossScale next_loss_scale(LossScale now, bool found_inf, const LossScaleRule& rule) {
  if (found_inf) return {static_cast<float>(now.scale * rule.backoff_factor), 0};
  if (now.growth_tracker + 1 != rule.growth_interval) return {now.scale, now.growth_tracker + 1};
  const auto grown = static_cast<float>(now.scale * rule.growth_factor);
  return {std::isfinite(grown) ? grown : now.scale, 0};
}

// Applies next_loss_scale in place, and sets inverse = 1 / scale. `scale`, `inverse`, `found_inf` (0 for none):
// float32; `growth_tracker`: int64; each of one element, on one device. Throws DTypeError, ShapeError, DeviceError.
extern Kernel<void(const Tensor& scale, const Tensor& inverse, const Tensor& growth_tracker, const Tensor& found_inf,
                   const LossScaleRule& rule)>
    update_loss_scale;

}  // namespace brigade::kernels
