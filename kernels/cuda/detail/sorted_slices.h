// Slices along a dimension as rows, for sort and topk.
#pragma once

#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/common/indexing.h>
#include <brigade/kernels/elementwise.h>

namespace brigade::kernels::cuda {

// x [rows, n] and the results, all dense; n at least 1 (defined in sort.cu).
void sort_rows(const Tensor& x, bool descending, const Sorted& out);

// Calls run(rows, out): [outer * inner, length] and its results [outer * inner, kept], all dense, and then copies these
// results to the plan's result.
template <class Run>
void with_rows(const SortPlan& plan, Run run) {
  const int64_t slices = plan.outer * plan.inner;
  const auto seen = [](const Tensor& t, const Shape& sizes) {
    return view::as_strided(t, sizes, contiguous_strides(sizes), t.storage_offset());
  };
  if (plan.inner == 1) {
    run(seen(plan.x, {slices, plan.length}),
        Sorted{seen(plan.result.values, {slices, plan.kept}), seen(plan.result.indices, {slices, plan.kept})});
    return;
  }
  const auto turned = [&](const Tensor& t, int64_t length) {
    return view::transpose(seen(t, {plan.outer, length, plan.inner}), 1, 2);
  };
  const Tensor rows = clone(turned(plan.x, plan.length));
  const Sorted out{empty({slices, plan.kept}, plan.result.values.options()),
                   empty({slices, plan.kept}, plan.result.indices.options())};
  run(seen(rows, {slices, plan.length}), out);
  copy(turned(plan.result.values, plan.kept), seen(out.values, {plan.outer, plan.inner, plan.kept}));
  copy(turned(plan.result.indices, plan.kept), seen(out.indices, {plan.outer, plan.inner, plan.kept}));
}

}  // namespace brigade::kernels::cuda
