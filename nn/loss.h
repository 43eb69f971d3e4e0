// Losses as modules. The functions in autograd/ops/loss.h document what each computes, for which shapes and dtypes, and
// what it throws. The result has no dimensions unless `reduction` is None. Weights are buffers: they move with the
// module.
#pragma once

#include <brigade/autograd/ops/loss.h>
#include <brigade/nn/module.h>

namespace brigade::nn {

// --- for class targets

// nn::CrossEntropyLoss loss({.label_smoothing = 0.1});
struct CrossEntropyLossImpl : Module {
  using Options = CrossEntropyLossOptions;
  explicit CrossEntropyLossImpl(const CrossEntropyLossOptions& options_ = {}) : options(options_) {
    if (options.weight.defined()) options.weight = register_buffer("weight", options.weight.detach());
  }
  explicit CrossEntropyLossImpl(Reduction reduction, int64_t ignore_index = -100)
      : CrossEntropyLossImpl(CrossEntropyLossOptions{.ignore_index = ignore_index, .reduction = reduction}) {}
  Tensor forward(const Tensor& logits, const Tensor& target, SourceLocation where = SourceLocation::current()) {
    const CallScope scope(*this, where);
    return cross_entropy(logits, target, options, where);
  }
  CrossEntropyLossOptions options;
};
BRIGADE_MODULE(CrossEntropyLoss);

struct NLLLossImpl : Module {
  using Options = NLLLossOptions;
  explicit NLLLossImpl(const NLLLossOptions& options_ = {}) : options(options_) {
    if (options.weight.defined()) options.weight = register_buffer("weight", options.weight.detach());
  }
  explicit NLLLossImpl(Reduction reduction) : NLLLossImpl(NLLLossOptions{.reduction = reduction}) {}
  Tensor forward(const Tensor& log_probs, const Tensor& target, SourceLocation where = SourceLocation::current()) {
    const CallScope scope(*this, where);
    return nll_loss(log_probs, target, options, where);
  }
  NLLLossOptions options;
};
BRIGADE_MODULE(NLLLoss);

// --- for an input and a target

struct BCELossImpl : Module {
  using Options = BCELossOptions;
  explicit BCELossImpl(const BCELossOptions& options_ = {}) : options(options_) {
    if (options.weight.defined()) options.weight = register_buffer("weight", options.weight.detach());
  }
  explicit BCELossImpl(Reduction reduction) : BCELossImpl(BCELossOptions{.reduction = reduction}) {}
  Tensor forward(const Tensor& x, const Tensor& target, SourceLocation where = SourceLocation::current()) {
    const CallScope scope(*this, where);
    return binary_cross_entropy(x, target, options, where);
  }
  BCELossOptions options;
};
BRIGADE_MODULE(BCELoss);

struct BCEWithLogitsLossImpl : Module {
  using Options = BCEWithLogitsLossOptions;
  explicit BCEWithLogitsLossImpl(const BCEWithLogitsLossOptions& options_ = {}) : options(options_) {
    if (options.weight.defined()) options.weight = register_buffer("weight", options.weight.detach());
    if (options.pos_weight.defined()) options.pos_weight = register_buffer("pos_weight", options.pos_weight.detach());
  }
  explicit BCEWithLogitsLossImpl(Reduction reduction)
      : BCEWithLogitsLossImpl(BCEWithLogitsLossOptions{.reduction = reduction}) {}
  Tensor forward(const Tensor& logits, const Tensor& target, SourceLocation where = SourceLocation::current()) {
    const CallScope scope(*this, where);
    return binary_cross_entropy_with_logits(logits, target, options, where);
  }
  BCEWithLogitsLossOptions options;
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

struct SmoothL1LossImpl : Module {
  explicit SmoothL1LossImpl(Reduction reduction_ = Reduction::Mean, double beta_ = 1)
      : reduction(reduction_), beta(beta_) {}
  Tensor forward(const Tensor& x, const Tensor& target, SourceLocation where = SourceLocation::current()) {
    const CallScope scope(*this, where);
    return smooth_l1_loss(x, target, reduction, beta, where);
  }
  Reduction reduction;
  double beta;
};
BRIGADE_MODULE(SmoothL1Loss);

struct HuberLossImpl : Module {
  explicit HuberLossImpl(Reduction reduction_ = Reduction::Mean, double delta_ = 1)
      : reduction(reduction_), delta(delta_) {}
  Tensor forward(const Tensor& x, const Tensor& target, SourceLocation where = SourceLocation::current()) {
    const CallScope scope(*this, where);
    return huber_loss(x, target, reduction, delta, where);
  }
  Reduction reduction;
  double delta;
};
BRIGADE_MODULE(HuberLoss);

struct KLDivLossImpl : Module {
  explicit KLDivLossImpl(KLDivReduction reduction_ = KLDivReduction::Mean, bool log_target_ = false)
      : reduction(reduction_), log_target(log_target_) {}
  Tensor forward(const Tensor& x, const Tensor& target, SourceLocation where = SourceLocation::current()) {
    const CallScope scope(*this, where);
    return kl_div(x, target, reduction, log_target, where);
  }
  KLDivReduction reduction;
  bool log_target;
};
BRIGADE_MODULE(KLDivLoss);

// --- with a margin

struct HingeEmbeddingLossImpl : Module {
  explicit HingeEmbeddingLossImpl(double margin_ = 1, Reduction reduction_ = Reduction::Mean)
      : margin(margin_), reduction(reduction_) {}
  Tensor forward(const Tensor& x, const Tensor& target, SourceLocation where = SourceLocation::current()) {
    const CallScope scope(*this, where);
    return hinge_embedding_loss(x, target, margin, reduction, where);
  }
  double margin;
  Reduction reduction;
};
BRIGADE_MODULE(HingeEmbeddingLoss);

struct MarginRankingLossImpl : Module {
  explicit MarginRankingLossImpl(double margin_ = 0, Reduction reduction_ = Reduction::Mean)
      : margin(margin_), reduction(reduction_) {}
  Tensor forward(const Tensor& x1, const Tensor& x2, const Tensor& target,
                 SourceLocation where = SourceLocation::current()) {
    const CallScope scope(*this, where);
    return margin_ranking_loss(x1, x2, target, margin, reduction, where);
  }
  double margin;
  Reduction reduction;
};
BRIGADE_MODULE(MarginRankingLoss);

struct CosineEmbeddingLossImpl : Module {
  explicit CosineEmbeddingLossImpl(double margin_ = 0, Reduction reduction_ = Reduction::Mean)
      : margin(margin_), reduction(reduction_) {}
  Tensor forward(const Tensor& x1, const Tensor& x2, const Tensor& target,
                 SourceLocation where = SourceLocation::current()) {
    const CallScope scope(*this, where);
    return cosine_embedding_loss(x1, x2, target, margin, reduction, where);
  }
  double margin;
  Reduction reduction;
};
BRIGADE_MODULE(CosineEmbeddingLoss);

struct SoftMarginLossImpl : Module {
  explicit SoftMarginLossImpl(Reduction reduction_ = Reduction::Mean) : reduction(reduction_) {}
  Tensor forward(const Tensor& x, const Tensor& target, SourceLocation where = SourceLocation::current()) {
    const CallScope scope(*this, where);
    return soft_margin_loss(x, target, reduction, where);
  }
  Reduction reduction;
};
BRIGADE_MODULE(SoftMarginLoss);

struct TripletMarginLossImpl : Module {
  using Options = TripletMarginLossOptions;
  explicit TripletMarginLossImpl(const TripletMarginLossOptions& options_ = {}) : options(options_) {}
  Tensor forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                 SourceLocation where = SourceLocation::current()) {
    const CallScope scope(*this, where);
    return triplet_margin_loss(anchor, positive, negative, options, where);
  }
  TripletMarginLossOptions options;
};
BRIGADE_MODULE(TripletMarginLoss);

// --- for distributions

struct PoissonNLLLossImpl : Module {
  using Options = PoissonNLLLossOptions;
  explicit PoissonNLLLossImpl(const PoissonNLLLossOptions& options_ = {}) : options(options_) {}
  Tensor forward(const Tensor& x, const Tensor& target, SourceLocation where = SourceLocation::current()) {
    const CallScope scope(*this, where);
    return poisson_nll_loss(x, target, options, where);
  }
  PoissonNLLLossOptions options;
};
BRIGADE_MODULE(PoissonNLLLoss);

struct GaussianNLLLossImpl : Module {
  using Options = GaussianNLLLossOptions;
  explicit GaussianNLLLossImpl(const GaussianNLLLossOptions& options_ = {}) : options(options_) {}
  Tensor forward(const Tensor& x, const Tensor& target, const Tensor& var,
                 SourceLocation where = SourceLocation::current()) {
    const CallScope scope(*this, where);
    return gaussian_nll_loss(x, target, var, options, where);
  }
  GaussianNLLLossOptions options;
};
BRIGADE_MODULE(GaussianNLLLoss);

}  // namespace brigade::nn
