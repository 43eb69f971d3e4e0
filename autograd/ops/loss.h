// Losses of an input and a target, element by element. `reduction` is Mean unless stated otherwise; the loss is then a
// tensor without dimensions. Input and target have one shape (no broadcasting, which is rarely intended). Different
// dtypes are promoted to the common one: with bfloat16 logits and a float32 target the loss is float32, and each
// gradient has the dtype of its tensor. mse_loss, l1_loss, smooth_l1_loss and huber_loss also take an integer target.
// Differentiable with respect to both. They throw ShapeError, DTypeError, DeviceError.
//
// Losses for class targets: cross_entropy.h; for pairs and triplets with a margin: margin_loss.h; for distributions:
// likelihood_loss.h.
#pragma once

#include <brigade/autograd/ops/cross_entropy.h>
#include <brigade/core/tensor.h>
#include <brigade/kernels/loss.h>

namespace brigade {

// (x - target)^2
Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::Mean,
                SourceLocation where = SourceLocation::current());
// |x - target|; gradient 0 where they are equal.
Tensor l1_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::Mean,
               SourceLocation where = SourceLocation::current());
// With d = |x - target|: d^2 / (2 beta) where d < beta, else d - beta / 2 (Girshick, "Fast R-CNN",
// arXiv 1504.08083). l1_loss for beta = 0; throws ValueError for a negative one.
Tensor smooth_l1_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::Mean, double beta = 1,
                      SourceLocation where = SourceLocation::current());
// d^2 / 2 where d < delta, else delta * (d - delta / 2). Throws ValueError unless delta > 0.
Tensor huber_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::Mean, double delta = 1,
                  SourceLocation where = SourceLocation::current());

struct BCELossOptions {
  Tensor weight = {};  // of each loss; broadcasts to the shape of the losses
  Reduction reduction = Reduction::Mean;
};
// -(target log(x) + (1 - target) log(1 - x)) for probabilities x in 0..1; the logarithms are clamped to at least -100.
// One dtype, as in PyTorch. Throws ValueError for an x outside 0..1 (on a CUDA device its loss is NaN).
Tensor binary_cross_entropy(const Tensor& x, const Tensor& target, const BCELossOptions& options,
                            SourceLocation where = SourceLocation::current());
Tensor binary_cross_entropy(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::Mean,
                            SourceLocation where = SourceLocation::current());

struct BCEWithLogitsLossOptions {
  Tensor weight = {};  // of each loss; broadcasts to the shape of the losses
  Reduction reduction = Reduction::Mean;
  Tensor pos_weight = {};  // of the positive class; broadcasts to the shape of the losses
};
// The same for x = sigmoid(logits), computed without overflow.
Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& target,
                                        const BCEWithLogitsLossOptions& options,
                                        SourceLocation where = SourceLocation::current());
Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& target,
                                        Reduction reduction = Reduction::Mean,
                                        SourceLocation where = SourceLocation::current());

// BatchMean divides the sum by the size of the first dimension, which matches the definition of the divergence; Mean
// divides by the number of elements.
enum class KLDivReduction : uint8_t { None, Mean, Sum, BatchMean };
// target * (log(target) - x), x being log probabilities; with log_target: exp(target) * (target -
// x).
Tensor kl_div(const Tensor& x, const Tensor& target, KLDivReduction reduction = KLDivReduction::Mean,
              bool log_target = false, SourceLocation where = SourceLocation::current());

}  // namespace brigade
