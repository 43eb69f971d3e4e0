// Batch normalization over dimension 1 (Ioffe and Szegedy, arXiv 1502.03167).
#pragma once

#include <brigade/core/tensor.h>

namespace brigade {

// x [N, C, ...]; weight, bias, running_mean, running_var [C], contiguous, each may be undefined
// (the running ones only when training). Training uses the batch's statistics and moves the running
// ones in place by `momentum`. Throws ShapeError, ValueError "Expected more than 1 value per
// channel when training, got input size ...".
Tensor batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                  const Tensor& running_var, bool training, double momentum = 0.1, double eps = 1e-5,
                  SourceLocation where = SourceLocation::current());

}  // namespace brigade
