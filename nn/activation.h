// Activations and dropout as modules, for nn::Sequential.
#pragma once

#include <brigade/autograd/ops/activation.h>
#include <brigade/nn/module.h>

namespace brigade::nn {

// --- Activations as modules, for nn::Sequential. Element by element, floating dtypes; the result has the shape of x.

namespace detail {
template <Tensor (*operation)(const Tensor&, SourceLocation)>
struct Activation : Module {
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current()) {
    const CallScope scope(*this, where);
    return operation(x, where);
  }
};

// Along one dimension; negative counts from the end.
template <Tensor (*operation)(const Tensor&, int64_t, SourceLocation)>
struct ActivationAlong : Module {
  explicit ActivationAlong(int64_t dim_) : dim(dim_) {}
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current()) {
    const CallScope scope(*this, where);
    return operation(x, dim, where);
  }
  int64_t dim;

 protected:
  std::string extra() const override { return "dim=" + std::to_string(dim); }
};
}  // namespace detail

struct ReLUImpl : detail::Activation<&relu> {};
BRIGADE_MODULE(ReLU);

struct LeakyReLUImpl : Module {
  explicit LeakyReLUImpl(double negative_slope_ = 0.01) : negative_slope(negative_slope_) {}
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
  double negative_slope;

 protected:
  std::string extra() const override;
};
BRIGADE_MODULE(LeakyReLU);

struct GELUImpl : Module {
  explicit GELUImpl(GeluApproximation approximate_ = GeluApproximation::None) : approximate(approximate_) {}
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
  GeluApproximation approximate;

 protected:
  std::string extra() const override;
};
BRIGADE_MODULE(GELU);

struct TanhImpl : detail::Activation<&brigade::tanh> {};
BRIGADE_MODULE(Tanh);

struct SigmoidImpl : detail::Activation<&sigmoid> {};
BRIGADE_MODULE(Sigmoid);

struct SiLUImpl : detail::Activation<&silu> {};
BRIGADE_MODULE(SiLU);

struct SoftmaxImpl : detail::ActivationAlong<&softmax> {
  using ActivationAlong::ActivationAlong;
};
BRIGADE_MODULE(Softmax);

struct LogSoftmaxImpl : detail::ActivationAlong<&log_softmax> {
  using ActivationAlong::ActivationAlong;
};
BRIGADE_MODULE(LogSoftmax);

// --- Dropout layer (Srivastava et al., JMLR 15, 2014).

// In training sets each element to zero with probability p and scales the others by 1 / (1 - p),
// with numbers from the calling thread's generator; in evaluation it returns x itself. Throws
// ValueError "dropout probability has to be between 0 and 1".
struct DropoutImpl : Module {
  explicit DropoutImpl(double p = 0.5);
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
  double p;

 protected:
  std::string extra() const override;
};
BRIGADE_MODULE(Dropout);

}  // namespace brigade::nn
