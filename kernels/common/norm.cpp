// Maps the order p to a kind of norm, and checks that a norm over no elements has a value.
#include <brigade/kernels/norm.h>

#include <brigade/kernels/common/check_floating.h>
#include <brigade/kernels/common/reduce.h>
#include <brigade/kernels/common/reducers.h>

#include <string>

namespace brigade::kernels {

NormKind norm_kind(double p) {
  if (std::isinf(p)) return p > 0 ? NormKind::Largest : NormKind::Smallest;
  return p == 0 ? NormKind::Zero : p == 1 ? NormKind::One : p == 2 ? NormKind::Two : NormKind::Any;
}

ReductionPlan prepare_norm(const Tensor& x, double p, const Shape& dims, bool keepdim) {
  check_floating(x.dtype(), "norm");
  ReductionPlan r = prepare_reduction(x, dims, keepdim, x.dtype());
  if (r.reduced == 0 && r.out.numel() > 0 && (p < 0 || std::isinf(p))) {
    throw ShapeError("norm: the norm of order {} of no elements has no value, got {}{}{}", p, describe(x),
                     dims.empty() ? "" : " over ", dims.empty() ? "" : to_string(dims));
  }
  return r;
}

}  // namespace brigade::kernels
