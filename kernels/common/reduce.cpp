// Device-independent parts of the reductions and scans: shapes, layouts, checks, and sum_to, which uses sum.
#include <brigade/kernels/reduce.h>

#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/common/arguments.h>
#include <brigade/kernels/common/reduce.h>
#include <brigade/kernels/common/reducers.h>
#include <brigade/kernels/elementwise.h>

#include <algorithm>

namespace brigade::kernels {
namespace {

DimSet set_of(const Shape& dims, int count) {
  if (dims.empty()) return DimSet::first(count);
  DimSet set;
  for (int64_t dim : dims) {
    if (!set.add(wrap_dim(dim, count))) throw ShapeError("dimension {} appears twice in {}", dim, dims);
  }
  return set;
}

// The dimensions by descending stride, if x is contiguous in that order. Empty for a contiguous x, for one that is not
// dense, and if the kept dimensions would change their order.
Shape dense_order(const Tensor& x, DimSet reduced) {
  if (x.is_contiguous()) return {};
  Shape order;
  for (int d = 0; d < x.dim(); ++d)
    order.push_back(d);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return x.strides()[static_cast<int>(a)] > x.strides()[static_cast<int>(b)];
  });
  int64_t last = -1;
  for (const int64_t d : order) {
    if (reduced.has(d) || x.sizes()[static_cast<int>(d)] == 1) continue;
    if (d < last) return {};
    last = d;
  }
  return view::permute(x, order).is_contiguous() ? order : Shape();
}

// Whether the reduced dimensions are adjacent in this order; if so, sets the three sizes.
bool has_neighbours(const Tensor& x, DimSet reduced, const Shape& order, ReductionPlan& result) {
  const auto is_reduced = [&](int d) { return reduced.has(order.empty() ? d : order[d]); };
  int first = 0;
  while (first < x.dim() && !is_reduced(first))
    ++first;
  int last = first;
  while (last < x.dim() && is_reduced(last))
    ++last;
  for (int d = last; d < x.dim(); ++d) {
    if (is_reduced(d)) return false;
  }
  for (int d = 0; d < x.dim(); ++d)
    (d < first  ? result.outer
     : d < last ? result.reduced
                : result.inner) *= x.sizes()[order.empty() ? d : static_cast<int>(order[d])];
  return true;
}

void arrange(const Tensor& x, DimSet reduced, ReductionPlan& result) {
  // Reduce in memory order, without a copy, if possible.
  if (const Shape dense = dense_order(x, reduced); !dense.empty() && has_neighbours(x, reduced, dense, result)) {
    result.x = view::permute(x, dense);
    result.order = dense;
    return;
  }
  if (has_neighbours(x, reduced, {}, result)) {
    result.x = contiguous(x);
    return;
  }
  Shape order;
  for (int d = 0; d < x.dim(); ++d) {
    if (!reduced.has(d)) order.push_back(d);
  }
  for (int d = 0; d < x.dim(); ++d) {
    if (reduced.has(d)) order.push_back(d);
    (reduced.has(d) ? result.reduced : result.outer) *= x.sizes()[d];
  }
  result.x = clone(view::permute(x, order));
  result.order = order;
}

Shape reduced_sizes(const Tensor& x, DimSet reduced, bool keepdim) {
  Shape sizes;
  for (int d = 0; d < x.dim(); ++d) {
    if (!reduced.has(d)) {
      sizes.push_back(x.sizes()[d]);
    } else if (keepdim) {
      sizes.push_back(1);
    }
  }
  return sizes;
}

}  // namespace

ReductionPlan prepare_reduction(const Tensor& x, const Shape& dims, bool keepdim, DType out) {
  const DimSet reduced = set_of(dims, x.dim());
  ReductionPlan result;
  result.out = empty(reduced_sizes(x, reduced, keepdim), {out, x.device()});
  arrange(x, reduced, result);
  return result;
}

ReductionPlan prepare_sum(const Tensor& x, const ReduceOptions& options) {
  const DimSet reduced = set_of(options.dims, x.dim());
  const Shape sizes = reduced_sizes(x, reduced, options.keepdim);
  const DType dtype = is_floating_point(x.dtype()) ? x.dtype() : kInt64;
  ReductionPlan result;
  result.out = options.out;
  result.accumulate = options.accumulate && options.out.defined();
  if (!result.out.defined()) {
    result.out = empty(sizes, {dtype, x.device()});
  } else if (result.out.numel() != sizes.numel() || result.out.dtype() != dtype || !result.out.is_contiguous()) {
    throw ShapeError("sum: out must be a contiguous {} {}, got {}", name(dtype), sizes, describe(result.out));
  }
  arrange(x, reduced, result);
  return result;
}

ExtremesPlan prepare_extremes(const Tensor& x, int dim, bool keepdim) {
  if (x.dim() > 0 && x.sizes()[dim] == 0) {
    throw ShapeError("max/min: dimension {} of {} is empty", dim, x.sizes());
  }
  ExtremesPlan plan;
  Shape sizes = x.sizes();
  if (x.dim() > 0) {
    plan.length = x.sizes()[dim];
    for (int d = dim + 1; d < x.dim(); ++d)
      plan.inner *= x.sizes()[d];
    if (keepdim) {
      sizes[dim] = 1;
    } else {
      sizes.erase(dim);
    }
  }
  plan.result = {empty(sizes, x.options()), empty(sizes, {kInt64, x.device()})};
  plan.x = contiguous(x);
  return plan;
}

ExtremesBackwardPlan prepare_extremes_backward(const Tensor& grad, const Tensor& indices, const Shape& x_sizes,
                                               int dim) {
  ExtremesBackwardPlan plan;
  if (!x_sizes.empty()) plan.length = x_sizes[dim];
  for (int d = dim + 1; d < x_sizes.size(); ++d)
    plan.inner *= x_sizes[d];
  if (grad.numel() * plan.length != x_sizes.numel() || indices.numel() != grad.numel()) {
    throw ShapeError("max/min: expected a gradient and an index for each slice along dimension {} of {}, got {} and {}",
                     dim, x_sizes, describe(grad), describe(indices));
  }
  plan.grad = contiguous(grad);
  plan.indices = contiguous(indices);
  plan.result = empty(x_sizes, grad.options());
  return plan;
}

Tensor sum_to(const Tensor& x, const Shape& sizes, const Tensor& out, bool accumulate) {
  Shape dims;
  const int added = x.dim() - sizes.size();
  for (int d = 0; d < x.dim(); ++d) {
    if (d < added || (sizes[d - added] == 1 && x.sizes()[d] != 1)) dims.push_back(d);
  }
  if (dims.empty()) {
    if (!out.defined()) return x;
    if (accumulate) {
      add_inplace(out, x, 1.0);
    } else {
      copy(out, x);
    }
    return out;
  }
  const Tensor result = sum(x, {.dims = dims, .keepdim = false, .out = out, .accumulate = accumulate});
  if (out.defined()) return out;
  return view::as_strided(result, sizes, contiguous_strides(sizes), 0);
}

// --- Argument checks of amax and amin: a reduction over no elements is an error.

ReductionPlan prepare_extreme(const Tensor& x, const Shape& dims, bool keepdim, const char* what) {
  ReductionPlan r = prepare_reduction(x, dims, keepdim, x.dtype());
  if (r.reduced == 0 && r.out.numel() > 0) {
    throw ShapeError("{}: expected at least one element along the reduced dimensions, got {}{}{}", what, describe(x),
                     dims.empty() ? "" : " over ", dims.empty() ? "" : to_string(dims));
  }
  return r;
}

// --- Maps the order p to a kind of norm, and checks that a norm over no elements has a value.

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

// --- The reduction behind a variance, and a gradient's buffer permuted back to the shape of x.

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

// --- Checks and dtypes of cumulative sums, products and linear recurrences.

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
