// Losses as modules.
#pragma once

#include <brigade/autograd/ops/loss.h>
#include <brigade/nn/module.h>

namespace brigade::nn {

struct CrossEntropyLossImpl : Module {
  explicit CrossEntropyLossImpl(Reduction reduction_ = Reduction::Mean, int64_t ignore_index_ = -100)
      : reduction(reduction_), ignore_index(ignore_index_) {}
  Tensor forward(const Tensor& logits, const Tensor& target, SourceLocation where = SourceLocation::current()) {
    return cross_entropy(logits, target, reduction, ignore_index, where);
  }
  Reduction reduction;
  int64_t ignore_index;
};
BRIGADE_MODULE(CrossEntropyLoss);

struct BCEWithLogitsLossImpl : Module {
  explicit BCEWithLogitsLossImpl(Reduction reduction_ = Reduction::Mean) : reduction(reduction_) {}
  Tensor forward(const Tensor& logits, const Tensor& target, SourceLocation where = SourceLocation::current()) {
    return binary_cross_entropy_with_logits(logits, target, reduction, where);
  }
  Reduction reduction;
};
BRIGADE_MODULE(BCEWithLogitsLoss);

struct MSELossImpl : Module {
  explicit MSELossImpl(Reduction reduction_ = Reduction::Mean) : reduction(reduction_) {}
  Tensor forward(const Tensor& x, const Tensor& target, SourceLocation where = SourceLocation::current()) {
    return mse_loss(x, target, reduction, where);
  }
  Reduction reduction;
};
BRIGADE_MODULE(MSELoss);

struct L1LossImpl : Module {
  explicit L1LossImpl(Reduction reduction_ = Reduction::Mean) : reduction(reduction_) {}
  Tensor forward(const Tensor& x, const Tensor& target, SourceLocation where = SourceLocation::current()) {
    return l1_loss(x, target, reduction, where);
  }
  Reduction reduction;
};
BRIGADE_MODULE(L1Loss);

}  // namespace brigade::nn
