// Helpers for composite losses and norms: the reduction of losses, and the dtype in which half types are
// differentiated.
#pragma once

#include <brigade/autograd/detail/widened.h>
#include <brigade/autograd/ops/reduce.h>
#include <brigade/kernels/loss.h>

namespace brigade::autograd::detail {

inline Tensor reduced(const Tensor& losses, Reduction reduction, SourceLocation where) {
  if (reduction == Reduction::None) return losses;
  return reduction == Reduction::Mean ? mean(losses, {}, false, where) : sum(losses, {}, false, where);
}

}  // namespace brigade::autograd::detail
