// Optimizer steps, one pass over the memory of a parameter. All tensors floating, contiguous, of one dtype and shape.
#pragma once

#include <brigade/kernels/kernel.h>

#include <initializer_list>
#include <utility>

namespace brigade::kernels {

// g = grad (negated if maximize) + weight_decay * p; buf = momentum * buf + (1 - dampening) * g (buf = g on the first
// step); g = nesterov ? g + momentum * buf : buf; p -= lr * g. `momentum_buffer` undefined when momentum is 0.
struct SgdParams {
  double lr, momentum, dampening, weight_decay;
  bool nesterov, first_step, maximize;
};
extern Kernel<void(const Tensor& param, const Tensor& grad, const Tensor& momentum_buffer, const SgdParams& params)>
    sgd_step;

// Adam (Kingma and Ba, arXiv 1412.6980) and AdamW (Loshchilov and Hutter, arXiv 1711.05101) when
// `decoupled_weight_decay`. `step` counts from 1. `max_exp_avg_sq` undefined unless amsgrad.
struct AdamParams {
  double lr, beta1, beta2, eps, weight_decay;
  int64_t step;
  bool decoupled_weight_decay, maximize;
};
extern Kernel<void(const Tensor& param, const Tensor& grad, const Tensor& exp_avg, const Tensor& exp_avg_sq,
                   const Tensor& max_exp_avg_sq, const AdamParams& params)>
    adam_step;

// For every device: throws ShapeError unless each tensor that is defined is contiguous and like the parameter.
void check_optimizer_tensors(const Tensor& param, std::initializer_list<std::pair<const char*, Tensor>> tensors);

}  // namespace brigade::kernels
