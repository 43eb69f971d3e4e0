// The forward of each module, which calls the operation, and the options that it prints.
#include <brigade/nn/activation.h>

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

}  // namespace brigade::nn
