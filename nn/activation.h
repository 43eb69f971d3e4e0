// Activations, dropout and flattening as modules, for nn::Sequential.
#pragma once

#include <brigade/autograd/ops/activation.h>
#include <brigade/nn/module.h>

namespace brigade::nn {

struct ReLUImpl : Module {
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
};
BRIGADE_MODULE(ReLU);

struct LeakyReLUImpl : Module {
  explicit LeakyReLUImpl(double negative_slope_ = 0.01) : negative_slope(negative_slope_) {}
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
  double negative_slope;
};
BRIGADE_MODULE(LeakyReLU);

struct GELUImpl : Module {
  explicit GELUImpl(GeluApproximation approximate_ = GeluApproximation::None) : approximate(approximate_) {}
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
  GeluApproximation approximate;
};
BRIGADE_MODULE(GELU);

struct TanhImpl : Module {
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
};
BRIGADE_MODULE(Tanh);

struct SigmoidImpl : Module {
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
};
BRIGADE_MODULE(Sigmoid);

struct SoftmaxImpl : Module {
  explicit SoftmaxImpl(int64_t dim_) : dim(dim_) {}
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
  int64_t dim;
};
BRIGADE_MODULE(Softmax);

struct LogSoftmaxImpl : Module {
  explicit LogSoftmaxImpl(int64_t dim_) : dim(dim_) {}
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
  int64_t dim;
};
BRIGADE_MODULE(LogSoftmax);

// Drops with probability p while training.
struct DropoutImpl : Module {
  explicit DropoutImpl(double p_ = 0.5);
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
  double p;

 protected:
  std::string extra() const override { return "p=" + std::to_string(p); }
};
BRIGADE_MODULE(Dropout);

struct FlattenImpl : Module {
  explicit FlattenImpl(int64_t start_dim_ = 1, int64_t end_dim_ = -1) : start_dim(start_dim_), end_dim(end_dim_) {}
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
  int64_t start_dim, end_dim;
};
BRIGADE_MODULE(Flatten);

struct IdentityImpl : Module {
  Tensor forward(const Tensor& x) { return x; }
};
BRIGADE_MODULE(Identity);

}  // namespace brigade::nn
