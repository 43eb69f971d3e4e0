// Optimizer steps over many parameters, one pass over the memory of each.
//
// The parameters of a call are floating, of one dtype, on one device (DTypeError, DeviceError),
// each contiguous and with tensors like it (ShapeError); all is checked before anything moves. On a
// GPU one launch takes 136 of them without state, 105 with momentum, 86 with Adam's moments (73
// with amsgrad); on the CPU they go one after the other.
#pragma once

#include <brigade/kernels/kernel.h>

#include <span>

namespace brigade::kernels {

// g = grad_factor * grad (negated if maximize) + weight_decay * p; buf = momentum * buf + (1 - dampening) * g
// (buf = g on the first step); g = nesterov ? g + momentum * buf : buf; p -= lr * g.
struct SgdParams {
  double lr, momentum, dampening, weight_decay;
  bool nesterov, first_step, maximize;
  double grad_factor = 1;  // of gradients that a loss scaler has made larger
  // What a device knows and the host does not: a further factor, and a number that is 0 unless nothing shall move
  // (float32), and what is to be taken for lr (float64). One element, on the parameters' device, read when the step runs;
  // undefined: none.
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
  double grad_factor = 1;                                     // as SgdParams,
  Tensor device_factor = {}, found_inf = {}, device_lr = {};  // and these
  Tensor clock = {};  // in place of `step`: on the parameters' device (adam_clock.h), read when the step runs
};
// `max_exp_avg_sqs`: empty unless amsgrad.
extern Kernel<void(std::span<const Tensor> params, std::span<const Tensor> grads, std::span<const Tensor> exp_avgs,
                   std::span<const Tensor> exp_avg_sqs, std::span<const Tensor> max_exp_avg_sqs,
                   const AdamParams& options)>
    foreach_adam_step;

// One parameter. `momentum_buffer` undefined when momentum is 0, `max_exp_avg_sq` unless amsgrad.
void sgd_step(const Tensor& param, const Tensor& grad, const Tensor& momentum_buffer, const SgdParams& options);
void adam_step(const Tensor& param, const Tensor& grad, const Tensor& exp_avg, const Tensor& exp_avg_sq,
               const Tensor& max_exp_avg_sq, const AdamParams& options);

}  // namespace brigade::kernels
