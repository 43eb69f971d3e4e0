// Losses. `reduction` is Mean unless said otherwise; the loss is then a tensor without dimensions.
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/kernels/loss.h>

namespace brigade {

// Logits [N, C, d1...] or [C] against class indices, int64 [N, d1...] or []. Targets equal to ignore_index count for
// nothing; Mean divides by the number of the others. Throws ShapeError, DTypeError, IndexError (a target that is no
// class: names its position).
Tensor cross_entropy(const Tensor& logits, const Tensor& target, Reduction reduction = Reduction::Mean,
                     int64_t ignore_index = -100, SourceLocation where = SourceLocation::current());
// On logits; the target is floating, of the same shape, with values in [0, 1].
Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& target,
                                        Reduction reduction = Reduction::Mean,
                                        SourceLocation where = SourceLocation::current());
// Mean of squares; same shapes. Differentiable with respect to both.
Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::Mean,
                SourceLocation where = SourceLocation::current());
// Mean of absolute differences; same shapes.
Tensor l1_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::Mean,
               SourceLocation where = SourceLocation::current());

}  // namespace brigade
