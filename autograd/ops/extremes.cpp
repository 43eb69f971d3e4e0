// The nodes of max and min: one element along a dimension, or equal ones that share the gradient.
#include <brigade/autograd/ops/reduce.h>

#include <brigade/autograd/detail/algebra.h>
#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/record.h>
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/reduce.h>

namespace brigade {
namespace {

using namespace autograd::detail::algebra;
using namespace autograd::detail;

// The gradient of a chosen element goes back to its place.
struct SelectElementNode final : Node {
  Shape sizes;
  int dim = 0;
  SavedTensor indices;
  void backward(BackwardContext& context) override {
    if (context.create_graph()) {
      context.set(0, differentiable(context.grad(), indices.unpack(*this)));
      return;
    }
    context.set(0, kernels::extremes_backward(context.grad(), indices.unpack(*this), sizes, dim));
  }

 private:
  // The gradient at the chosen places, 0 elsewhere.
  Tensor differentiable(const Tensor& grad, const Tensor& at) const {
    Shape kept_sizes = sizes;
    Shape places = Shape::filled(sizes.size(), 1);
    int64_t length = 1;
    if (!sizes.empty()) {
      kept_sizes[dim] = 1;
      length = places[dim] = sizes[dim];
    }
    const Tensor chosen = view::as_strided(at, kept_sizes, contiguous_strides(kept_sizes), 0);
    const Tensor counted = arange(0, static_cast<double>(length), 1, {kInt64, at.device()});
    const Tensor here = kernels::compare(view::as_strided(counted, places, contiguous_strides(places), 0), chosen,
                                         kernels::CompareOp::Equal);
    return choose(here, grad.reshape(kept_sizes, {}), 0.0);
  }
};

MinMax extremum(const char* op, const Tensor& x, int64_t dim, bool keepdim, bool is_max, SourceLocation where) {
  const int at = dimension_of(op, dim, x.dim(), where);
  kernels::Extremes found =
      located(op, where, [&] { return is_max ? kernels::max(x, at, keepdim) : kernels::min(x, at, keepdim); });
  const Tensor* inputs[] = {&x};
  const Tensor* outputs[] = {&found.values, &found.indices};
  if (auto* node = record<SelectElementNode>({.op = op, .where = where}, inputs, outputs)) {
    node->sizes = x.sizes();
    node->dim = at;
    node->indices.save_input(*node, found.indices);
  }
  return {found.values, found.indices};
}

// Equal extremes share the gradient evenly.
struct ExtremumNode final : Node {
  SavedTensor x, y;
  Shape dims;
  bool shares_among_nans = false;  // as max() does; amax() gives NaN
  void backward(BackwardContext& context) override {
    const Tensor values = x.unpack(*this);
    const Shape kept = kept_sizes(values.sizes(), dims);
    const Tensor grad = context.grad().reshape(kept, {});
    const Tensor chosen = view::as_strided(y.unpack(*this), kept, contiguous_strides(kept), 0);
    const Tensor share = shares(values, chosen);
    // A product alone is not enough: an infinite gradient times 0 is NaN.
    context.set(0, choose(share != 0.0, grad * share, 0.0));
  }

 private:
  // Each element's share of the gradient, a constant unless the chosen elements change.
  Tensor shares(const Tensor& values, const Tensor& chosen) const {
    using enum kernels::CompareOp;
    Tensor equal = kernels::compare(values, chosen, Equal);
    if (shares_among_nans) {
      const Tensor both_nan = kernels::binary(kernels::compare(values, values, NotEqual),
                                              kernels::compare(chosen, chosen, NotEqual), kernels::BinaryOp::Mul);
      equal = kernels::binary(equal, both_nan, kernels::BinaryOp::Maximum);
    }
    // Half types hold whole numbers up to 256 or 2048 only.
    const DType dtype = values.dtype() == kFloat64 ? kFloat64 : kFloat32;
    const Tensor count = kernels::sum(equal, {.dims = dims, .keepdim = true});
    const Tensor share = kernels::binary_scalar(kernels::cast(count, dtype), 1.0, kernels::BinaryOp::Div, true);
    return kernels::binary(kernels::cast(equal, values.dtype()), kernels::cast(share, values.dtype()),
                           kernels::BinaryOp::Mul);
  }
};

struct ExtremumOptions {
  Shape dims = {};
  bool keepdim = false;
  bool is_max = true;
  bool shares_among_nans = false;
};
Tensor extremum(const char* op, const Tensor& x, const ExtremumOptions& options, SourceLocation where) {
  Tensor y = located(op, where, [&] {
    return options.is_max ? kernels::amax(x, options.dims, options.keepdim)
                          : kernels::amin(x, options.dims, options.keepdim);
  });
  if (auto* node = record<ExtremumNode>({.op = op, .where = where}, {x}, y)) {
    node->x.save_input(*node, x);
    node->y.save_output(*node, y);
    node->dims = options.dims;
    node->shares_among_nans = options.shares_among_nans;
  }
  return y;
}

Tensor place_along(const char* op, const Tensor& x, int64_t dim, bool keepdim, bool is_max, SourceLocation where) {
  const int at = dimension_of(op, dim, x.dim(), where);
  Tensor y = located(op, where,
                     [&] { return is_max ? kernels::argmax(x, at, keepdim) : kernels::min(x, at, keepdim).indices; });
  autograd::record_without_node({.op = op, .where = where, .differentiable = false}, {x}, y);
  return y;
}
Tensor place_among_all(const char* op, const Tensor& x, bool is_max, SourceLocation where) {
  Tensor y = located(op, where, [&] {
    const Tensor flat = view::flat(kernels::contiguous(x));
    return is_max ? kernels::argmax(flat, 0, false) : kernels::min(flat, 0, false).indices;
  });
  autograd::record_without_node({.op = op, .where = where, .differentiable = false}, {x}, y);
  return y;
}

}  // namespace

MinMax max(const Tensor& x, int64_t dim, bool keepdim, SourceLocation where) {
  return extremum("max", x, dim, keepdim, true, where);
}
MinMax min(const Tensor& x, int64_t dim, bool keepdim, SourceLocation where) {
  return extremum("min", x, dim, keepdim, false, where);
}

Tensor max(const Tensor& x, SourceLocation where) { return extremum("max", x, {.shares_among_nans = true}, where); }
Tensor min(const Tensor& x, SourceLocation where) {
  return extremum("min", x, {.is_max = false, .shares_among_nans = true}, where);
}
Tensor amax(const Tensor& x, const Dims& dims, bool keepdim, SourceLocation where) {
  return extremum("amax", x, {.dims = dims, .keepdim = keepdim}, where);
}
Tensor amin(const Tensor& x, const Dims& dims, bool keepdim, SourceLocation where) {
  return extremum("amin", x, {.dims = dims, .keepdim = keepdim, .is_max = false}, where);
}

Tensor argmax(const Tensor& x, int64_t dim, bool keepdim, SourceLocation where) {
  return place_along("argmax", x, dim, keepdim, true, where);
}
Tensor argmin(const Tensor& x, int64_t dim, bool keepdim, SourceLocation where) {
  return place_along("argmin", x, dim, keepdim, false, where);
}
Tensor argmax(const Tensor& x, SourceLocation where) { return place_among_all("argmax", x, true, where); }
Tensor argmin(const Tensor& x, SourceLocation where) { return place_among_all("argmin", x, false, where); }

}  // namespace brigade
