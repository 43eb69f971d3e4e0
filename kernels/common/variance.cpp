// The reduction behind a variance, and a gradient's buffer permuted back to the shape of x.
#include <brigade/kernels/variance.h>

#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/common/check_floating.h>
#include <brigade/kernels/common/reduce.h>
#include <brigade/kernels/elementwise.h>

namespace brigade::kernels {

VariancePlan prepare_variance(const Tensor& x, const Shape& dims, bool keepdim) {
  check_floating(x.dtype(), "var");
  VariancePlan plan{.slices = prepare_reduction(x, dims, keepdim, x.dtype()), .mean = {}};
  plan.mean = empty_like(plan.slices.out);
  return plan;
}

VarianceBackwardPlan prepare_variance_backward(const Tensor& factor, const Tensor& x, const Tensor& mean,
                                               const Shape& dims) {
  check_floating(x.dtype(), "var backward");
  VarianceBackwardPlan plan{.slices = prepare_reduction(x, dims, false, x.dtype()),
                            .factor = contiguous(factor),
                            .mean = contiguous(mean),
                            .slope = {},
                            .result = {}};
  for (const Tensor* each : {&factor, &mean}) {
    if (each->numel() == plan.slices.out.numel() && each->dtype() == x.dtype()) continue;
    throw ShapeError("var backward: expected a factor and a mean like {}, got {} and {}", describe(plan.slices.out),
                     describe(factor), describe(mean));
  }
  plan.slope = empty_like(plan.slices.x);
  plan.result = plan.slope;
  if (!plan.slices.order.empty()) {
    Shape inverse = plan.slices.order;
    for (int d = 0; d < inverse.size(); ++d)
      inverse[static_cast<int>(plan.slices.order[d])] = d;
    plan.result = view::permute(plan.slope, inverse);
  }
  return plan;
}

}  // namespace brigade::kernels
