// The formulas of the Poisson and Gaussian losses, and the checks of a variance.
#include <brigade/autograd/ops/loss.h>

#include <brigade/autograd/autocast_mode.h>
#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/ops/arithmetic.h>
#include <brigade/autograd/ops/elementwise.h>
#include <brigade/autograd/ops/reduce.h>
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/reduce.h>

#include <cmath>
#include <numbers>

namespace brigade {
namespace {

using autograd::detail::reduced;

// log(target!) for large targets: target log(target) - target + log(2 pi target) / 2.
Tensor stirling(const Tensor& target, SourceLocation where) {
  const Tensor large = gt(target, 1.0, where).to(target.dtype(), where);
  // Targets of at most 1 do not contribute; replace them to keep the logarithms finite.
  const Tensor safe = maximum(target, full({}, 1, target.options()), where);
  const Tensor logs = log(safe, where);
  const Tensor value = add(sub(mul(safe, logs, where), safe, where),
                           add(mul(logs, 0.5, where), 0.5 * std::log(2 * std::numbers::pi), where), where);
  return mul(value, large, where);
}

bool has_negative(const Tensor& x) {
  if (x.numel() == 0) return false;
  const Tensor smallest = kernels::min(view::flat(kernels::contiguous(x)), 0, false).values;
  return brigade::detail::element_as_double(smallest, 0) < 0;
}

// Adds the last dimension if `var` leaves it out.
Tensor beside(const Tensor& var, const Tensor& x, SourceLocation where) {
  if (var.sizes() == x.sizes()) return var;
  int ones = 0;
  bool fits = var.dim() == x.dim();
  for (int d = 0; d < x.dim() && fits; ++d) {
    if (var.size(d) == x.size(d)) continue;
    fits = var.size(d) == 1;
    ++ones;
  }
  if (fits && ones == 1) return var;
  Shape without_last = x.sizes();
  if (x.dim() > 0) without_last.erase(x.dim() - 1);
  if (x.dim() > 0 && var.sizes() == without_last) return var.unsqueeze(-1, where);
  throw ShapeError(where,
                   "gaussian_nll_loss: expected a var like the input {}, without its last dimension, or with one 1 in "
                   "it, got {}",
                   x.sizes(), describe(var));
}

}  // namespace

Tensor poisson_nll_loss(const Tensor& x, const Tensor& target, const PoissonNLLLossOptions& options,
                        SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"poisson_nll_loss">(where, x, target))
      return poisson_nll_loss(in[0], in[1], options, where);
  }
  Tensor losses = options.log_input ? sub(exp(x, where), mul(target, x, where), where)
                                    : sub(x, mul(target, log(add(x, options.eps, where), where), where), where);
  if (options.full) losses = add(losses, stirling(target, where), where);
  return reduced(losses, options.reduction, where);
}

Tensor gaussian_nll_loss(const Tensor& x, const Tensor& target, const Tensor& var,
                         const GaussianNLLLossOptions& options, SourceLocation where) {
  const Tensor given = beside(var, x, where);
  if (has_negative(given)) {
    throw ValueError("gaussian_nll_loss: var has negative entry/entries; expected variances of at least 0", where);
  }
  // Raise the variance to eps by a constant, so that the gradient passes.
  const Tensor values = given.detach(where);
  const Tensor variance = add(given, sub(clamp_min(values, options.eps, where), values, where), where);
  const Tensor squares = div(square(sub(x, target, where), where), variance, where);
  Tensor losses = mul(add(log(variance, where), squares, where), 0.5, where);
  if (options.full) losses = add(losses, 0.5 * std::log(2 * std::numbers::pi), where);
  return reduced(losses, options.reduction, where);
}

}  // namespace brigade
