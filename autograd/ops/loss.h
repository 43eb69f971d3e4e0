// Losses: element by element, against class targets, likelihoods, with a margin.
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/kernels/loss.h>

namespace brigade {

// --- Losses of an input and a target, element by element. `reduction` is Mean unless stated otherwise; the loss is
// then a tensor without dimensions. Input and target have one shape (no broadcasting, which is rarely intended).
// Different dtypes are promoted to the common one: with bfloat16 logits and a float32 target the loss is float32, and
// each gradient has the dtype of its tensor. mse_loss, l1_loss, smooth_l1_loss and huber_loss also take an integer
// target. Differentiable with respect to both. They throw ShapeError, DTypeError, DeviceError.

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

// --- Losses for class targets. They throw ShapeError, DTypeError, DeviceError, IndexError (for a target that is not a
// class, with its position), and ValueError for a label_smoothing outside 0..1.

struct CrossEntropyLossOptions {
  Tensor weight = {};           // of each class, [C]
  int64_t ignore_index = -100;  // targets equal to it are ignored
  Reduction reduction = Reduction::Mean;
  double label_smoothing = 0;  // this much of the target is spread evenly over all classes (arXiv 1512.00567)
};
// Logits [N, C, d1...] or [C] against
//   class indices, int64 [N, d1...] or []: Mean divides by the weights of the targets that count, or
//   probabilities of the classes, floating, of the shape of the logits, differentiable as well: the loss has the
//   common dtype of both, Mean divides by the number of positions; ignore_index has no meaning for them.
Tensor cross_entropy(const Tensor& logits, const Tensor& target, const CrossEntropyLossOptions& options,
                     SourceLocation where = SourceLocation::current());
Tensor cross_entropy(const Tensor& logits, const Tensor& target, Reduction reduction = Reduction::Mean,
                     int64_t ignore_index = -100, SourceLocation where = SourceLocation::current());

struct NLLLossOptions {
  Tensor weight = {};
  int64_t ignore_index = -100;
  Reduction reduction = Reduction::Mean;
};
// -weight * log_probs at the class of the target: log probabilities [N, C, d1...] or [C] against
// class indices, as above.
Tensor nll_loss(const Tensor& log_probs, const Tensor& target, const NLLLossOptions& options,
                SourceLocation where = SourceLocation::current());
Tensor nll_loss(const Tensor& log_probs, const Tensor& target, Reduction reduction = Reduction::Mean,
                SourceLocation where = SourceLocation::current());

// --- Negative log likelihoods of a target under a distribution that the input describes. Composites of other
// operations. `reduction` is Mean unless stated otherwise. They throw ShapeError, DTypeError.

struct PoissonNLLLossOptions {
  bool log_input = true;  // x is the logarithm of the rate
  bool full = false;      // with Stirling's approximation of log(target!), for targets above 1
  double eps = 1e-8;      // added to the rate before its logarithm is taken
  Reduction reduction = Reduction::Mean;
};
// exp(x) - target * x, or, without log_input, x - target * log(x + eps).
Tensor poisson_nll_loss(const Tensor& x, const Tensor& target, const PoissonNLLLossOptions& options = {},
                        SourceLocation where = SourceLocation::current());

struct GaussianNLLLossOptions {
  bool full = false;  // with the constant log(2 pi) / 2
  double eps = 1e-6;  // lower bound of the variances; their gradients ignore it
  Reduction reduction = Reduction::Mean;
};
// (log(var) + (x - target)^2 / var) / 2. var has the shape of x, that shape without the last dimension, or that shape
// with one size replaced by 1. Throws ValueError for a negative variance (the check reads the variances and waits for a
// device).
Tensor gaussian_nll_loss(const Tensor& x, const Tensor& target, const Tensor& var,
                         const GaussianNLLLossOptions& options = {}, SourceLocation where = SourceLocation::current());

// --- Losses with a margin: for labels 1 and -1, for pairs and for triplets. Composites of other operations.
// `reduction` is Mean unless stated otherwise; labels are floating or integers. They throw ShapeError, DTypeError.

// x where the label is 1, max(0, margin - x) where it is -1.
Tensor hinge_embedding_loss(const Tensor& x, const Tensor& target, double margin = 1,
                            Reduction reduction = Reduction::Mean, SourceLocation where = SourceLocation::current());
// max(0, -target * (x1 - x2) + margin): label 1 means that x1 should be the larger. The shapes
// broadcast.
Tensor margin_ranking_loss(const Tensor& x1, const Tensor& x2, const Tensor& target, double margin = 0,
                           Reduction reduction = Reduction::Mean, SourceLocation where = SourceLocation::current());
// For the cosine of x1 and x2, [N, D] or [D]: 1 - cosine where the label, [N] or [], is 1, and max(0, cosine - margin)
// where it is -1. An N of 1 broadcasts. 1e-12 is added to the squared lengths: the cosine of a zero vector is defined.
Tensor cosine_embedding_loss(const Tensor& x1, const Tensor& x2, const Tensor& target, double margin = 0,
                             Reduction reduction = Reduction::Mean, SourceLocation where = SourceLocation::current());
// log(1 + exp(-target * x)), computed without overflow.
Tensor soft_margin_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::Mean,
                        SourceLocation where = SourceLocation::current());

struct TripletMarginLossOptions {
  double margin = 1;
  double p = 2;  // of the norm; may be infinity
  double eps = 1e-6;
  bool swap = false;  // compare the negative with the nearer of anchor and positive (Balntas et al., BMVC 2016)
  Reduction reduction = Reduction::Mean;
};
// max(0, d(anchor, positive) - d(anchor, negative) + margin), d(a, b) the norm of a - b + eps over
// the last dimension. Throws ValueError for a p or a margin that is not positive.
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginLossOptions& options = {},
                           SourceLocation where = SourceLocation::current());

}  // namespace brigade
