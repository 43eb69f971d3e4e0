#include <brigade/autograd/ops/reduce.h>

#include <brigade/autograd/detail/located.h>
#include <brigade/autograd/ops/arithmetic.h>
#include <brigade/autograd/record.h>
#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/reduce.h>

namespace brigade {

namespace {

using autograd::BackwardContext;
using autograd::Node;
using autograd::record;
using autograd::SavedTensor;
using autograd::detail::located;

struct SumNode final : Node {
  Shape sizes;       // of the input
  Shape kept_sizes;  // of the result, with reduced dimensions as 1
  double factor = 1;
  void backward(BackwardContext& context) override {
    const Tensor grad = factor == 1 ? context.grad() : mul(context.grad(), factor, {});
    context.set(0, grad.reshape(kept_sizes, {}).expand(sizes, {}));
  }
};

Shape kept(const Shape& sizes, const Shape& dims) {
  Shape result = dims.empty() ? Shape::filled(sizes.size(), 1) : sizes;
  for (int64_t dim : dims)
    result[wrap_dim(dim, sizes.size())] = 1;
  return result;
}

Tensor reduce(const char* op, const Tensor& x, const Shape& dims, bool keepdim, bool is_mean, SourceLocation where) {
  const kernels::ReduceOptions options{.dims = dims, .keepdim = keepdim};
  Tensor y = located(where, [&] { return is_mean ? kernels::mean(x, options) : kernels::sum(x, options); });
  if (auto* node = record<SumNode>({.op = op, .where = where}, {x}, y)) {
    node->sizes = x.sizes();
    node->kept_sizes = kept(x.sizes(), dims);
    if (is_mean)
      node->factor =
          static_cast<double>(std::max<int64_t>(y.numel(), 1)) / static_cast<double>(std::max<int64_t>(x.numel(), 1));
  }
  return y;
}

// The gradient of a chosen element goes back to its place.
struct SelectElementNode final : Node {
  Shape sizes;
  int dim = 0;
  Tensor indices;  // int64, not differentiable: no version to watch
  void backward(BackwardContext& context) override {
    if (context.create_graph()) {
      context.set(0, differentiable(context.grad()));
      return;
    }
    context.set(0, kernels::extremes_backward(context.grad(), indices, sizes, dim));
  }

 private:
  // The gradient times 1 at the chosen places, 0 elsewhere.
  Tensor differentiable(const Tensor& grad) const {
    Shape kept_sizes = sizes;
    Shape places = Shape::filled(sizes.size(), 1);
    int64_t length = 1;
    if (!sizes.empty()) {
      kept_sizes[dim] = 1;
      length = places[dim] = sizes[dim];
    }
    const Tensor chosen = view::as_strided(indices, kept_sizes, contiguous_strides(kept_sizes), 0);
    const Tensor counted = arange(0, static_cast<double>(length), 1, {kInt64, indices.device()});
    const Tensor here = kernels::compare(view::as_strided(counted, places, contiguous_strides(places), 0), chosen,
                                         kernels::CompareOp::Equal);
    return mul(grad.reshape(kept_sizes, {}), kernels::cast(here, grad.dtype()), {});
  }
};

MinMax extremum(const char* op, const Tensor& x, int64_t dim, bool keepdim, bool is_max, SourceLocation where) {
  const int at = wrap_dim(dim, x.dim(), where);
  kernels::Extremes found =
      located(where, [&] { return is_max ? kernels::max(x, at, keepdim) : kernels::min(x, at, keepdim); });
  const Tensor* inputs[] = {&x};
  const Tensor* outputs[] = {&found.values, &found.indices};
  if (auto* node = record<SelectElementNode>({.op = op, .where = where}, inputs, outputs)) {
    node->sizes = x.sizes();
    node->dim = at;
    node->indices = found.indices;
  }
  return {found.values, found.indices};
}

}  // namespace

Tensor sum(const Tensor& x, const Shape& dims, bool keepdim, SourceLocation where) {
  return reduce("sum", x, dims, keepdim, false, where);
}
Tensor mean(const Tensor& x, const Shape& dims, bool keepdim, SourceLocation where) {
  return reduce("mean", x, dims, keepdim, true, where);
}

MinMax max(const Tensor& x, int64_t dim, bool keepdim, SourceLocation where) {
  return extremum("max", x, dim, keepdim, true, where);
}
MinMax min(const Tensor& x, int64_t dim, bool keepdim, SourceLocation where) {
  return extremum("min", x, dim, keepdim, false, where);
}

Tensor argmax(const Tensor& x, int64_t dim, bool keepdim, SourceLocation where) {
  const int at = wrap_dim(dim, x.dim(), where);
  Tensor y = located(where, [&] { return kernels::argmax(x, at, keepdim); });
  autograd::record_without_node({.op = "argmax", .where = where, .differentiable = false}, {x}, y);
  return y;
}

Tensor sum_to(const Tensor& x, const Shape& sizes, SourceLocation where) {
  if (x.sizes() == sizes) return x;
  Tensor y = located(where, [&] { return kernels::sum_to(x, sizes); });
  if (auto* node = record<SumNode>({.op = "sum_to", .where = where}, {x}, y)) {
    node->sizes = x.sizes();
    node->kept_sizes = sizes;
  }
  return y;
}

}  // namespace brigade
