// Optimizer steps over many parameters, one pass over the memory of each.
//
// The parameters of a call are floating, of one dtype, on one device (DTypeError, DeviceError), each contiguous, with
// state tensors of its shape (ShapeError); all arguments are checked before any parameter changes. On a GPU one launch
// takes 136 of them without state, 105 with momentum, 86 with Adam's moments (73 with amsgrad); the CPU updates them
// one by one.
#pragma once

#include <brigade/kernels/kernel.h>

#include <span>

namespace brigade::kernels {

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
  Tensor clock = {};  // replaces `step`: on the parameters' device (adam_clock.h), read when the step runs
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

}  // namespace brigade::kernels
