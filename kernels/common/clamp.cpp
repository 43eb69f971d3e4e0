// The dtype of a clamp: integers stay such where both borders are whole numbers.
#include <brigade/core/factory.h>
#include <brigade/kernels/common/clamp.h>
#include <brigade/kernels/elementwise.h>

#include <cmath>

namespace brigade::kernels {

ClampPlan prepare_clamp(const Tensor& x, const Borders& borders) {
  if (x.dtype() == kBool) throw DTypeError("clamp: not defined for a bool tensor; convert with .to(kInt64)");
  const auto is_whole = [](std::optional<double> border) { return !border || *border == std::floor(*border); };
  const bool keeps = is_floating_point(x.dtype()) || (is_whole(borders.lower) && is_whole(borders.upper));
  const DType dtype = keeps ? x.dtype() : kFloat32;
  return {cast(x, dtype), empty(x.sizes(), {dtype, x.device()})};
}

}  // namespace brigade::kernels
