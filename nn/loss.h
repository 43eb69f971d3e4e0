// Losses as modules. The functions in autograd/ops/loss.h document what each computes, for which shapes and dtypes, and
// what it throws. The result has no dimensions unless `reduction` is None. Weights are buffers: they move with the
// module.
#pragma once

#include <brigade/autograd/ops/loss.h>
#include <brigade/nn/module.h>

namespace brigade::nn {

namespace detail {

// A loss of an input and a target, with options.
template <class O, Tensor (*loss)(const Tensor&, const Tensor&, const O&, SourceLocation)>
struct LossWithOptions : Module {
  using Options = O;
  explicit LossWithOptions(const O& options_ = {}) : options(options_) {
    if constexpr (requires { options.weight; }) hold("weight", options.weight);
    if constexpr (requires { options.pos_weight; }) hold("pos_weight", options.pos_weight);
  }
  explicit LossWithOptions(Reduction reduction) : LossWithOptions(O{.reduction = reduction}) {}
  Tensor forward(const Tensor& x, const Tensor& target, SourceLocation where = SourceLocation::current()) {
    const CallScope scope(*this, where);
    return loss(x, target, options, where);
  }
  O options;

 private:
  void hold(const char* name, Tensor& weight) {
    if (weight.defined()) weight = register_buffer(name, weight.detach());
  }
};

// A loss of an input and a target, without options.
template <Tensor (*loss)(const Tensor&, const Tensor&, Reduction, SourceLocation)>
struct LossWithReduction : Module {
  explicit LossWithReduction(Reduction reduction_ = Reduction::Mean) : reduction(reduction_) {}
  Tensor forward(const Tensor& x, const Tensor& target, SourceLocation where = SourceLocation::current()) {
    const CallScope scope(*this, where);
    return loss(x, target, reduction, where);
  }
  Reduction reduction;
};

// A loss of two inputs and a target, with a margin.
template <Tensor (*loss)(const Tensor&, const Tensor&, const Tensor&, double, Reduction, SourceLocation)>
struct LossOfPairs : Module {
  explicit LossOfPairs(double margin_ = 0, Reduction reduction_ = Reduction::Mean)
      : margin(margin_), reduction(reduction_) {}
  Tensor forward(const Tensor& x1, const Tensor& x2, const Tensor& target,
                 SourceLocation where = SourceLocation::current()) {
    const CallScope scope(*this, where);
    return loss(x1, x2, target, margin, reduction, where);
  }
  double margin;
  Reduction reduction;
};

}  // namespace detail

// --- for class targets

// nn::CrossEntropyLoss loss({.label_smoothing = 0.1});
struct CrossEntropyLossImpl : detail::LossWithOptions<CrossEntropyLossOptions, &cross_entropy> {
  using LossWithOptions::LossWithOptions;
  explicit CrossEntropyLossImpl(Reduction reduction, int64_t ignore_index = -100)
      : LossWithOptions({.ignore_index = ignore_index, .reduction = reduction}) {}
};
BRIGADE_MODULE(CrossEntropyLoss);

struct NLLLossImpl : detail::LossWithOptions<NLLLossOptions, &nll_loss> {
  using LossWithOptions::LossWithOptions;
};
BRIGADE_MODULE(NLLLoss);

// --- for an input and a target

struct BCELossImpl : detail::LossWithOptions<BCELossOptions, &binary_cross_entropy> {
  using LossWithOptions::LossWithOptions;
};
BRIGADE_MODULE(BCELoss);

struct BCEWithLogitsLossImpl : detail::LossWithOptions<BCEWithLogitsLossOptions, &binary_cross_entropy_with_logits> {
  using LossWithOptions::LossWithOptions;
};
BRIGADE_MODULE(BCEWithLogitsLoss);

struct MSELossImpl : detail::LossWithReduction<&mse_loss> {
  using LossWithReduction::LossWithReduction;
};
BRIGADE_MODULE(MSELoss);

struct L1LossImpl : detail::LossWithReduction<&l1_loss> {
  using LossWithReduction::LossWithReduction;
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

struct MarginRankingLossImpl : detail::LossOfPairs<&margin_ranking_loss> {
  using LossOfPairs::LossOfPairs;
};
BRIGADE_MODULE(MarginRankingLoss);

struct CosineEmbeddingLossImpl : detail::LossOfPairs<&cosine_embedding_loss> {
  using LossOfPairs::LossOfPairs;
};
BRIGADE_MODULE(CosineEmbeddingLoss);

struct SoftMarginLossImpl : detail::LossWithReduction<&soft_margin_loss> {
  using LossWithReduction::LossWithReduction;
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

struct PoissonNLLLossImpl : detail::LossWithOptions<PoissonNLLLossOptions, &poisson_nll_loss> {
  using LossWithOptions::LossWithOptions;
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
