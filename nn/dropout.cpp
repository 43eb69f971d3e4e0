// Checks the probability; only a module in training mode drops elements.
#include <brigade/nn/dropout.h>

#include <brigade/autograd/ops/dropout.h>
#include <brigade/nn/detail/text.h>

namespace brigade::nn {

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
