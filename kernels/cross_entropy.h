// Losses against class indices: cross entropy of logits, and the negative log likelihood of log probabilities.
//
// Logits [N, C, d1...] or [C]; targets int64 [N, d1...] or []. A target equal to ignore_index is ignored. Mean divides
// by the total weight of the other targets. Half types are computed and summed in float32 and rounded once. Throw
// ShapeError, DTypeError, DeviceError, and IndexError naming the position and value of a target outside 0..C-1; on a
// CUDA device that error is reported late (core/cuda/device_error.h), and such a target is ignored until then.
#pragma once

#include <brigade/kernels/kernel.h>
#include <brigade/kernels/loss.h>

namespace brigade::kernels {

struct ClassLossOptions {
  Reduction reduction = Reduction::Mean;
  int64_t ignore_index = -100;
  Tensor weight = {};  // [C], any floating dtype; undefined: all 1
  // e: the target's class has the probability 1 - e + e / C, the others e / C (Szegedy et al.,
  // arXiv 1512.00567).
  double label_smoothing = 0;
};

struct CrossEntropy {
  Tensor loss;         // [] or [N, d1...] for Reduction::None
  Tensor log_sums;     // [2, N, d1...]: the largest logit m, then log(sum of exp(logit - m)); float32 for half types
  Tensor denominator;  // the divisor of Mean: float64 [], on the device of the logits; undefined for Sum and None
};
extern Kernel<CrossEntropy(const Tensor& logits, const Tensor& target, const ClassLossOptions& options)> cross_entropy;
// grad is [] or [N, d1...]; `log_sums` and `denominator` as the forward returned them.
extern Kernel<Tensor(const Tensor& grad, const Tensor& logits, const Tensor& target, const Tensor& log_sums,
                     const Tensor& denominator, const ClassLossOptions& options)>
    cross_entropy_backward;

// label_smoothing is not used.
struct NllLoss {
  Tensor loss, denominator;  // as above
};
extern Kernel<NllLoss(const Tensor& log_probs, const Tensor& target, const ClassLossOptions& options)> nll_loss;
// The gradient of log_probs of shape `sizes`, in the dtype of grad.
extern Kernel<Tensor(const Tensor& grad, const Shape& sizes, const Tensor& target, const Tensor& denominator,
                     const ClassLossOptions& options)>
    nll_loss_backward;

}  // namespace brigade::kernels
