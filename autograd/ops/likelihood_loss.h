// Negative log likelihoods of a target under a distribution that the input describes. Composites of
// other operations. `reduction` is Mean unless said otherwise. Throw ShapeError, DTypeError.
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/kernels/loss.h>

namespace brigade {

struct PoissonNLLLossOptions {
  bool log_input = true;  // x is the logarithm of the rate
  bool full = false;      // with Stirling's approximation of log(target!), for targets above 1
  double eps = 1e-8;      // added to the rate before its logarithm is taken
  Reduction reduction = Reduction::Mean;
};
// exp(x) - target * x, or, without log_input, x - target * log(x + eps).
Tensor poisson_nll_loss(const Tensor& x, const Tensor& target, const PoissonNLLLossOptions& options = {},
                        SourceLocation where = SourceLocation::current());

struct GaussianNLLLossOptions {
  bool full = false;  // with the constant log(2 pi) / 2
  double eps = 1e-6;  // variances are not below it; their gradients do not see that
  Reduction reduction = Reduction::Mean;
};
// (log(var) + (x - target)^2 / var) / 2. var has the shape of x, or that without the last
// dimension, or one with a 1 in it. Throws ValueError for a negative variance (which reads the
// variances: waits for a device).
Tensor gaussian_nll_loss(const Tensor& x, const Tensor& target, const Tensor& var,
                         const GaussianNLLLossOptions& options = {}, SourceLocation where = SourceLocation::current());

}  // namespace brigade
