// Losses as modules; the functions in autograd/ops/loss.h say what each computes, for which shapes and dtypes, and what
// it throws. The result has no dimensions unless `reduction` is None.
#pragma once

#include <brigade/autograd/ops/loss.h>
#include <brigade/nn/module.h>

namespace brigade::nn {

// Logits [N, C, d1...] against class indices [N, d1...]; targets equal to ignore_index count for nothing.
struct CrossEntropyLossImpl : Module {
  explicit CrossEntropyLossImpl(Reduction reduction_ = Reduction::Mean, int64_t ignore_index_ = -100)
      : reduction(reduction_), ignore_index(ignore_index_) {}
  Tensor forward(const Tensor& logits, const Tensor& target, SourceLocation where = SourceLocation::current()) {
    const CallScope scope(*this, where);
    return cross_entropy(logits, target, reduction, ignore_index, where);
  }
  Reduction reduction;
  int64_t ignore_index;
};
BRIGADE_MODULE(CrossEntropyLoss);

struct BCEWithLogitsLossImpl : Module {
  explicit BCEWithLogitsLossImpl(Reduction reduction_ = Reduction::Mean) : reduction(reduction_) {}
  Tensor forward(const Tensor& logits, const Tensor& target, SourceLocation where = SourceLocation::current()) {
    const CallScope scope(*this, where);
    return binary_cross_entropy_with_logits(logits, target, reduction, where);
  }
  Reduction reduction;
};
BRIGADE_MODULE(BCEWithLogitsLoss);

struct MSELossImpl : Module {
  explicit MSELossImpl(Reduction reduction_ = Reduction::Mean) : reduction(reduction_) {}
  Tensor forward(const Tensor& x, const Tensor& target, SourceLocation where = SourceLocation::current()) {
    const CallScope scope(*this, where);
    return mse_loss(x, target, reduction, where);
  }
  Reduction reduction;
};
BRIGADE_MODULE(MSELoss);

struct L1LossImpl : Module {
  explicit L1LossImpl(Reduction reduction_ = Reduction::Mean) : reduction(reduction_) {}
  Tensor forward(const Tensor& x, const Tensor& target, SourceLocation where = SourceLocation::current()) {
    const CallScope scope(*this, where);
    return l1_loss(x, target, reduction, where);
  }
  Reduction reduction;
};
BRIGADE_MODULE(L1Loss);

}  // namespace brigade::nn
