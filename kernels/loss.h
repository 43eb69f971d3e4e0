// Elementwise losses of an input x and a target z of one shape and dtype, fused with their reduction. `reduction` as in
// PyTorch. Half types are computed and summed in float32 and rounded once. Throw ShapeError, DTypeError, DeviceError.
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade {

enum class Reduction : uint8_t { None, Mean, Sum };

namespace kernels {

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

}  // namespace kernels
}  // namespace brigade
