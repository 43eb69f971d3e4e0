// Negative log likelihoods of a target under a distribution that the input describes. Composites of
// other operations. `reduction` is Mean unless stated otherwise. They throw ShapeError, DTypeError.
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
  double eps = 1e-6;  // lower bound of the variances; their gradients ignore it
  Reduction reduction = Reduction::Mean;
};
// (log(var) + (x - target)^2 / var) / 2. var has the shape of x, that shape without the last dimension, or that shape
// with one size replaced by 1. Throws ValueError for a negative variance (the check reads the variances and waits for a
// device).
Tensor gaussian_nll_loss(const Tensor& x, const Tensor& target, const Tensor& var,
                         const GaussianNLLLossOptions& options = {}, SourceLocation where = SourceLocation::current());

}  // namespace brigade
