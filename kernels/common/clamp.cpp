// The result dtype of a clamp: integers stay integers if both bounds are integers.
#include <brigade/core/factory.h>
#include <brigade/kernels/common/clamp.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/promotion.h>

namespace brigade::kernels {

ClampPlan prepare_clamp(const Tensor& x, const Borders& borders) {
  if (x.dtype() == kBool) throw DTypeError("clamp: not defined for a bool tensor; convert with .to(kInt64)");
  const auto takes = [&](const std::optional<Scalar>& border) { return border ? result_type(x, *border) : x.dtype(); };
  const DType dtype = promote_types(takes(borders.lower), takes(borders.upper));
  return {cast(x, dtype), empty(x.sizes(), {dtype, x.device()})};
}

}  // namespace brigade::kernels
