// Checks k and allocates values and indices; a sort is a topk of all elements.
#include <brigade/kernels/sort.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/common/sort.h>
#include <brigade/kernels/elementwise.h>

#include <string>

namespace brigade::kernels {

SortPlan prepare_topk(const Tensor& x, int64_t k, int dim) {
  SortPlan plan;
  for (int d = 0; d < x.dim(); ++d)
    (d < dim ? plan.outer : d == dim ? plan.length : plan.inner) *= x.sizes()[d];
  if (k < 0 || k > plan.length) {
    throw ValueError("topk: expected a k of 0..{}, the size of dimension {} of {}, got {}", plan.length, dim, x.sizes(),
                     k);
  }
  plan.kept = k;
  plan.x = contiguous(x);
  Shape sizes = x.sizes();
  if (x.dim() > 0) sizes[dim] = k;
  if (x.dim() == 0 && k == 0) sizes = {0};
  plan.result = {empty(sizes, x.options()), empty(sizes, {kInt64, x.device()})};
  return plan;
}

SortPlan prepare_sort(const Tensor& x, int dim) { return prepare_topk(x, x.dim() > 0 ? x.sizes()[dim] : 1, dim); }

}  // namespace brigade::kernels
