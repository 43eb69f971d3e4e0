// Losses for class targets. They throw ShapeError, DTypeError, DeviceError, IndexError (for a target that is not a
// class, with its position), and ValueError for a label_smoothing outside 0..1.
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/kernels/loss.h>

namespace brigade {

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

}  // namespace brigade
