// More activations as modules (autograd/ops/activation.h): element by element, floating dtypes; the result
// has the shape of x unless stated otherwise.
#pragma once

#include <brigade/nn/activation.h>

namespace brigade::nn {

struct ELUImpl : Module {
  explicit ELUImpl(double alpha_ = 1) : alpha(alpha_) {}
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
  double alpha;

 protected:
  std::string extra() const override;
};
BRIGADE_MODULE(ELU);

struct SELUImpl : detail::Activation<&selu> {};
BRIGADE_MODULE(SELU);

struct CELUImpl : Module {
  explicit CELUImpl(double alpha_ = 1) : alpha(alpha_) {}
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
  double alpha;

 protected:
  std::string extra() const override;
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

struct SoftshrinkImpl : Module {
  explicit SoftshrinkImpl(double lambda_ = 0.5) : lambda(lambda_) {}
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
  double lambda;

 protected:
  std::string extra() const override;
};
BRIGADE_MODULE(Softshrink);

struct HardshrinkImpl : Module {
  explicit HardshrinkImpl(double lambda_ = 0.5) : lambda(lambda_) {}
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
  double lambda;

 protected:
  std::string extra() const override;
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
struct GLUImpl : Module {
  explicit GLUImpl(int64_t dim_ = -1) : dim(dim_) {}
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
  int64_t dim;

 protected:
  std::string extra() const override { return "dim=" + std::to_string(dim); }
};
BRIGADE_MODULE(GLU);

}  // namespace brigade::nn
