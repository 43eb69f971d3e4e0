// Losses, elementwise and against class indices, with their derivatives.
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade {

enum class Reduction : uint8_t { None, Mean, Sum };

namespace kernels {

// --- Elementwise losses of an input x and a target z of one shape and dtype, fused with their reduction. `reduction`
// as in PyTorch. Half types are computed and summed in float32 and rounded once. Throw ShapeError, DTypeError,
// DeviceError.

enum class PairLossKind : uint8_t {
  Squared,             // (x - z)^2
  Absolute,            // |x - z|
  SmoothL1,            // d = |x - z|, parameter beta: d^2 / (2 beta) where d < beta, else d - beta / 2
  Huber,               // parameter delta: d^2 / 2 where d < delta, else delta * (d - delta / 2)
  BinaryCrossEntropy,  // -z log(x) - (1 - z) log(1 - x), the logarithms clamped to at least -100
  BceWithLogits,       // log(1 + exp(-|x|)) + |x| (x > 0 ? 1 - z : z)
  KlDivergence,        // z (log(z) - x), 0 where z is 0
  KlDivergenceLog,     // exp(z) (z - x)
};
struct PairLoss {
  PairLossKind kind = PairLossKind::Squared;
  double parameter = 0;
};
// The name of the function in autograd/ops/loss.h: "mse_loss".
const char* name(PairLossKind kind) noexcept;

// [] or, for Reduction::None, the shape of x. On the CPU BinaryCrossEntropy throws ValueError for
// an x outside 0..1; on a CUDA device the loss of such an x is NaN.
extern Kernel<Tensor(const Tensor& x, const Tensor& target, const PairLoss& loss, Reduction reduction)> pair_loss;

// The operand that the gradient is taken with respect to.
enum class PairSide : uint8_t { Input, Target };
// grad is [] or, for Reduction::None, of the shape of x.
extern Kernel<Tensor(const Tensor& grad, const Tensor& x, const Tensor& target, const PairLoss& loss, PairSide side,
                     Reduction reduction)>
    pair_loss_backward;

// --- Losses against class indices: cross entropy of logits, and the negative log likelihood of log probabilities.
//
// Logits [N, C, d1...] or [C]; targets int64 [N, d1...] or []. A target equal to ignore_index is ignored. Mean divides
// by the total weight of the other targets. Half types are computed and summed in float32 and rounded once. Throw
// ShapeError, DTypeError, DeviceError, and IndexError naming the position and value of a target outside 0..C-1; on a
// CUDA device that error is reported late (core/cuda/error.h), and such a target is ignored until then.

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

}  // namespace kernels
}  // namespace brigade
