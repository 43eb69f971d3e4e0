// More optimizer steps over many parameters (optimizer.h has the rules common to all of them): RMSprop, Adagrad,
// Adadelta, RAdam, NAdam and Lion. In all of them g = grad (negated if maximize).
#pragma once

#include <brigade/kernels/kernel.h>

#include <span>

namespace brigade::kernels {

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

}  // namespace brigade::kernels
