// Checks and dtypes of cumulative sums, products and linear recurrences.
#include <brigade/kernels/scan.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/common/check_floating.h>
#include <brigade/kernels/common/scan.h>
#include <brigade/kernels/elementwise.h>

#include <string>

namespace brigade::kernels {

namespace {

ScanPlan plan_slices(const Tensor& x, int dim) {
  ScanPlan plan;
  for (int d = 0; d < x.dim(); ++d)
    (d < dim ? plan.outer : d == dim ? plan.length : plan.inner) *= x.sizes()[d];
  plan.x = contiguous(x);
  plan.result = empty(x.sizes(), x.options());
  return plan;
}

}  // namespace

ScanPlan prepare_scan(const Tensor& x, int dim, ScanOp op) {
  if (op == ScanOp::LogSumExp) check_floating(x.dtype(), "logcumsumexp");
  return plan_slices(is_floating_point(x.dtype()) ? x : cast(x, kInt64), dim);
}

ScanPlan prepare_linear_recurrence(const Tensor& b, const Tensor& a, int dim) {
  check_floating(b.dtype(), "linear_recurrence");
  if (a.sizes() != b.sizes() || a.dtype() != b.dtype()) {
    throw ShapeError("linear_recurrence: expected two tensors of one shape and dtype, got {} and {}", describe(b),
                     describe(a));
  }
  if (a.device() != b.device()) {
    throw DeviceError("linear_recurrence: both tensors must be on one device, got {} and {}", describe(b), describe(a));
  }
  ScanPlan plan = plan_slices(b, dim);
  plan.factor = contiguous(a);
  return plan;
}

}  // namespace brigade::kernels
