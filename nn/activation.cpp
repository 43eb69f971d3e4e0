// The forward of each module, which calls the operation, and the options that it prints.
#include <brigade/nn/activation.h>
#include <brigade/nn/parametric_activation.h>

#include <brigade/kernels/factory.h>
#include <brigade/nn/detail/options.h>

namespace brigade::nn {

Tensor LeakyReLUImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  return leaky_relu(x, negative_slope, where);
}
std::string LeakyReLUImpl::extra() const { return "negative_slope=" + detail::text_of(negative_slope); }

Tensor GELUImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  return gelu(x, approximate, where);
}
std::string GELUImpl::extra() const { return approximate == GeluApproximation::Tanh ? "approximate=tanh" : ""; }

// --- Checks the probability; only a module in training mode drops elements.

DropoutImpl::DropoutImpl(double probability) : p(probability) {
  if (!(p >= 0 && p <= 1))
    throw ValueError("dropout probability has to be between 0 and 1, but got " + detail::text_of(p));
}

Tensor DropoutImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  return dropout(x, p, is_training(), where);
}

std::string DropoutImpl::extra() const { return "p=" + detail::text_of(p); }

// --- Activations with parameters or bounds.

using detail::text_of;

Tensor SoftplusImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  return softplus(x, beta, threshold, where);
}
std::string SoftplusImpl::extra() const { return "beta=" + text_of(beta) + ", threshold=" + text_of(threshold); }

Tensor HardtanhImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  return hardtanh(x, min_val, max_val, where);
}
std::string HardtanhImpl::extra() const { return "min_val=" + text_of(min_val) + ", max_val=" + text_of(max_val); }

PReLUImpl::PReLUImpl(const PReLUOptions& o) : options(o) {
  if (o.num_parameters < 1)
    throw ValueError("PReLU: num_parameters must be at least 1, got " + std::to_string(o.num_parameters));
  weight = register_parameter("weight", full({o.num_parameters}, o.init, o.dtype));
}
Tensor PReLUImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  return prelu(x, weight, where);
}
std::string PReLUImpl::extra() const { return "num_parameters=" + std::to_string(options.num_parameters); }

}  // namespace brigade::nn
