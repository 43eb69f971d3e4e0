// Argument checks of amax and amin: a reduction over no elements is an error.
#include <brigade/kernels/amax.h>

#include <brigade/kernels/common/reduce.h>

#include <string>

namespace brigade::kernels {

ReductionPlan prepare_extreme(const Tensor& x, const Shape& dims, bool keepdim, const char* what) {
  ReductionPlan r = prepare_reduction(x, dims, keepdim, x.dtype());
  if (r.reduced == 0 && r.out.numel() > 0) {
    throw ShapeError("{}: expected at least one element along the reduced dimensions, got {}{}{}", what, describe(x),
                     dims.empty() ? "" : " over ", dims.empty() ? "" : to_string(dims));
  }
  return r;
}

}  // namespace brigade::kernels
