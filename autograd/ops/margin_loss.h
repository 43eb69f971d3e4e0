// Losses with a margin: for labels 1 and -1, for pairs and for triplets. Composites of other operations. `reduction` is
// Mean unless stated otherwise; labels are floating or integers. They throw ShapeError, DTypeError.
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/kernels/loss.h>

namespace brigade {

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
