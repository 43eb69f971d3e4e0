// More activations as modules (autograd/ops/activation.h): element by element, floating dtypes; the result
// has the shape of x unless stated otherwise.
#pragma once

#include <brigade/nn/activation.h>
#include <brigade/nn/detail/options.h>

namespace brigade::nn {

namespace detail {
template <Tensor (*operation)(const Tensor&, double, SourceLocation)>
struct ActivationWithAlpha : Module {
  explicit ActivationWithAlpha(double alpha_ = 1) : alpha(alpha_) {}
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current()) {
    const CallScope scope(*this, where);
    return operation(x, alpha, where);
  }
  double alpha;

 protected:
  std::string extra() const override { return "alpha=" + text_of(alpha); }
};
template <Tensor (*operation)(const Tensor&, double, SourceLocation)>
struct Shrink : Module {
  explicit Shrink(double lambda_ = 0.5) : lambda(lambda_) {}
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current()) {
    const CallScope scope(*this, where);
    return operation(x, lambda, where);
  }
  double lambda;

 protected:
  std::string extra() const override { return text_of(lambda); }
};
}  // namespace detail

struct ELUImpl : detail::ActivationWithAlpha<&elu> {
  using ActivationWithAlpha::ActivationWithAlpha;
};
BRIGADE_MODULE(ELU);

struct SELUImpl : detail::Activation<&selu> {};
BRIGADE_MODULE(SELU);

struct CELUImpl : detail::ActivationWithAlpha<&celu> {
  using ActivationWithAlpha::ActivationWithAlpha;
};
BRIGADE_MODULE(CELU);

struct SoftplusImpl : Module {
  explicit SoftplusImpl(double beta_ = 1, double threshold_ = 20) : beta(beta_), threshold(threshold_) {}
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
  double beta, threshold;

 protected:
  std::string extra() const override;
};
BRIGADE_MODULE(Softplus);

struct HardtanhImpl : Module {
  explicit HardtanhImpl(double min_val_ = -1, double max_val_ = 1) : min_val(min_val_), max_val(max_val_) {}
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
  double min_val, max_val;

 protected:
  std::string extra() const override;
};
BRIGADE_MODULE(Hardtanh);

struct ReLU6Impl : detail::Activation<&relu6> {};
BRIGADE_MODULE(ReLU6);

struct HardsigmoidImpl : detail::Activation<&hardsigmoid> {};
BRIGADE_MODULE(Hardsigmoid);

struct HardswishImpl : detail::Activation<&hardswish> {};
BRIGADE_MODULE(Hardswish);

struct MishImpl : detail::Activation<&mish> {};
BRIGADE_MODULE(Mish);

struct SoftsignImpl : detail::Activation<&softsign> {};
BRIGADE_MODULE(Softsign);

struct LogSigmoidImpl : detail::Activation<&logsigmoid> {};
BRIGADE_MODULE(LogSigmoid);

struct SoftshrinkImpl : detail::Shrink<&softshrink> {
  using Shrink::Shrink;
};
BRIGADE_MODULE(Softshrink);

struct HardshrinkImpl : detail::Shrink<&hardshrink> {
  using Shrink::Shrink;
};
BRIGADE_MODULE(Hardshrink);

struct PReLUOptions {
  int64_t num_parameters = 1;  // one slope for all, or one per channel (dimension 1)
  double init = 0.25;
  DType dtype = DType::Float32;
};

// Parameter `weight` [num_parameters]. Throws ValueError unless there is at least one; forward
// throws ShapeError when the input has another number of channels.
struct PReLUImpl : Module {
  using Options = PReLUOptions;
  explicit PReLUImpl(const PReLUOptions& options = {});
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());

  PReLUOptions options;
  Tensor weight;

 protected:
  std::string extra() const override;
};

//   nn::PReLU slopes({.num_parameters = 64});
BRIGADE_MODULE(PReLU);

// Halves the size along `dim`.
struct GLUImpl : detail::ActivationAlong<&glu> {
  explicit GLUImpl(int64_t dim_ = -1) : ActivationAlong(dim_) {}
};
BRIGADE_MODULE(GLU);

}  // namespace brigade::nn
