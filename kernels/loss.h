// Losses, fused. `reduction` as in PyTorch.
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade {

enum class Reduction : uint8_t { None, Mean, Sum };

namespace kernels {

// Cross entropy of logits [N, C, d1...] against class indices int64 [N, d1...]: log_softmax and NLL in one pass.
// Mean divides by the number of targets that are not `ignore_index`. Half types are summed and divided in float32 and
// rounded once. Throws ShapeError, DTypeError, DeviceError, and IndexError that names the position and value of a
// target outside 0..C-1; on a CUDA device that error comes late (core/cuda/device_error.h), and such a target counts as
// an ignored one until then.
struct CrossEntropy {
  Tensor loss;         // [] or [N, d1...] for Reduction::None
  Tensor log_probs;    // shape of logits; saved for backward
  Tensor denominator;  // what Mean divided by: float64 [], where the logits are; undefined for Sum and None
};
extern Kernel<CrossEntropy(const Tensor& logits, const Tensor& target, Reduction reduction, int64_t ignore_index)>
    cross_entropy;
// grad is [] or [N, d1...]; `denominator` as the forward returned it.
extern Kernel<Tensor(const Tensor& grad, const Tensor& log_probs, const Tensor& target, const Tensor& denominator,
                     int64_t ignore_index)>
    cross_entropy_backward;

// max(x,0) - x*z + log(1 + exp(-|x|)); x, z same shape. Sums of half types as above.
extern Kernel<Tensor(const Tensor& x, const Tensor& target, Reduction reduction)> bce_with_logits;
extern Kernel<Tensor(const Tensor& grad, const Tensor& x, const Tensor& target, Reduction reduction)>
    bce_with_logits_backward;
// (x - z)^2
extern Kernel<Tensor(const Tensor& x, const Tensor& target, Reduction reduction)> mse_loss;
// with respect to x; negate for the target
extern Kernel<Tensor(const Tensor& grad, const Tensor& x, const Tensor& target, Reduction reduction)> mse_loss_backward;

}  // namespace kernels
}  // namespace brigade
