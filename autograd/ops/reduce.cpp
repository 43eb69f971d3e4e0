// The nodes of sum, mean, prod and logsumexp, and count_nonzero, any and all, which have no node.
#include <brigade/autograd/ops/reduce.h>

#include <brigade/autograd/autocast_mode.h>
#include <brigade/autograd/detail/algebra.h>
#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/ops/shape.h>
#include <brigade/autograd/record.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/reduce.h>

namespace brigade {
namespace {

using namespace autograd::detail::algebra;
using namespace autograd::detail;

struct SumNode final : Node {
  Shape sizes;       // of the input
  Shape kept_sizes;  // of the result, with reduced dimensions as 1
  double factor = 1;
  void backward(BackwardContext& context) override {
    const Tensor grad = factor == 1 ? context.grad() : context.grad() * factor;
    context.set(0, grad.reshape(kept_sizes, {}).expand(sizes, {}));
  }
};

Tensor reduce(const char* op, const Tensor& x, const Dims& dims, bool keepdim, bool is_mean, SourceLocation where) {
  const kernels::ReduceOptions options{.dims = dims, .keepdim = keepdim};
  Tensor y = located(op, where, [&] { return is_mean ? kernels::mean(x, options) : kernels::sum(x, options); });
  if (auto* node = record<SumNode>({.op = op, .where = where}, {x}, y)) {
    node->sizes = x.sizes();
    node->kept_sizes = kept_sizes(x.sizes(), dims);
    if (is_mean)
      node->factor =
          static_cast<double>(std::max<int64_t>(y.numel(), 1)) / static_cast<double>(std::max<int64_t>(x.numel(), 1));
  }
  return y;
}

// For each element of a slice (along the last dimension), the product of all others: elements are multiplied in pairs,
// the products in pairs again; on the way back each element gets its partner's value times the result for its pair.
// There is no division, so zeros need no special case and every derivative is correct.
Tensor products_of_others(const Tensor& factors) {
  const int64_t n = factors.sizes().back();
  if (n <= 1) return ones(factors.sizes(), factors.options());
  const int64_t half = n / 2;
  const Tensor left = factors.slice(-1, 0, half, 1, {});
  const Tensor right = factors.slice(-1, half, 2 * half, 1, {});
  const Tensor odd = factors.slice(-1, 2 * half, n, 1, {});
  const Tensor pairs = left * right;
  const Tensor others = products_of_others(n % 2 == 0 ? pairs : cat({pairs, odd}, -1, {}));
  const Tensor of_pairs = others.slice(-1, 0, half, 1, {});
  std::vector<Tensor> parts{of_pairs * right, of_pairs * left};
  if (n % 2 != 0) parts.push_back(others.slice(-1, half, half + 1, 1, {}));
  return cat(parts, -1, {});
}

struct ProdNode final : Node {
  SavedTensor x;
  Shape dims;
  void backward(BackwardContext& context) override {
    const Tensor values = x.unpack(*this);
    // Half types are multiplied in float, as in forward.
    const DType dtype = values.dtype() == kFloat64 ? kFloat64 : kFloat32;
    const Tensor others = products_of_others(to_slices(values.to(dtype, {}), dims));
    const Tensor grad = context.grad().reshape(kept_sizes(values.sizes(), dims), {}).to(dtype, {});
    context.set(0, (from_slices(others, values.sizes(), dims) * grad).to(values.dtype(), {}));
  }
};

// exp(x - y)
struct LogsumexpNode final : Node {
  SavedTensor x, y;
  Shape dims;
  void backward(BackwardContext& context) override {
    const Tensor& grad = context.grad();
    const Tensor values = widened(x.unpack(*this));
    const Shape kept = kept_sizes(values.sizes(), dims);
    const Tensor share = exp_of(values - widened(y.unpack(*this)).reshape(kept, {}));
    context.set(0, in_dtype(share * widened(grad).reshape(kept, {}), grad.dtype()));
  }
};

// The number of elements that are 0, or that are not.
Tensor count(const Tensor& x, kernels::CompareOp op, const Dims& dims, bool keepdim) {
  const bool is_counted = x.dtype() == kBool && op == kernels::CompareOp::NotEqual;
  return kernels::sum(is_counted ? x : kernels::compare_scalar(x, 0.0, op), {.dims = dims, .keepdim = keepdim});
}
// Bool, except for uint8, whose truth values PyTorch keeps in uint8.
Tensor truth(const Tensor& counts, kernels::CompareOp op, DType of) {
  const Tensor result = kernels::compare_scalar(counts, 0.0, op);
  return of == kUInt8 ? kernels::cast(result, kUInt8) : result;
}

// Only dimensions that broadcasting stretched can be summed back.
void check_broadcast(const Shape& from, const Shape& to, SourceLocation where) {
  const int added = to.size() - from.size();
  bool fits = added >= 0;
  for (int d = 0; fits && d < from.size(); ++d)
    fits = from[d] == to[d + added] || from[d] == 1;
  if (fits) return;
  throw ShapeError(where, "sum_to: a tensor {} cannot be summed to {}, which does not broadcast to it", to, from);
}

}  // namespace

Tensor sum(const Tensor& x, const Dims& dims, bool keepdim, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"sum">(where, x)) return sum(in[0], dims, keepdim, where);
  }
  return reduce("sum", x, dims, keepdim, false, where);
}
Tensor mean(const Tensor& x, const Dims& dims, bool keepdim, SourceLocation where) {
  return reduce("mean", x, dims, keepdim, true, where);
}

Tensor prod(const Tensor& x, const Dims& dims, bool keepdim, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"prod">(where, x)) return prod(in[0], dims, keepdim, where);
  }
  Tensor y = located("prod", where, [&] { return kernels::prod(x, dims, keepdim); });
  if (auto* node = record<ProdNode>({.op = "prod", .where = where}, {x}, y)) {
    node->x.save_input(*node, x);
    node->dims = dims;
  }
  return y;
}

Tensor logsumexp(const Tensor& x, const Dims& dims, bool keepdim, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"logsumexp">(where, x)) return logsumexp(in[0], dims, keepdim, where);
  }
  const Tensor values = is_floating_point(x.dtype()) ? x : x.to(kFloat32, where);
  Tensor y = located("logsumexp", where, [&] { return kernels::logsumexp(values, dims, keepdim); });
  if (auto* node = record<LogsumexpNode>({.op = "logsumexp", .where = where}, {values}, y)) {
    node->x.save_input(*node, values);
    node->y.save_output(*node, y);
    node->dims = dims;
  }
  return y;
}

Tensor count_nonzero(const Tensor& x, const Dims& dims, SourceLocation where) {
  Tensor y = located("count_nonzero", where, [&] { return count(x, kernels::CompareOp::NotEqual, dims, false); });
  autograd::record_without_node({.op = "count_nonzero", .where = where, .differentiable = false}, {x}, y);
  return y;
}

Tensor any(const Tensor& x, const Dims& dims, bool keepdim, SourceLocation where) {
  Tensor y = located("any", where, [&] {
    return truth(count(x, kernels::CompareOp::NotEqual, dims, keepdim), kernels::CompareOp::Greater, x.dtype());
  });
  autograd::record_without_node({.op = "any", .where = where, .differentiable = false}, {x}, y);
  return y;
}

Tensor all(const Tensor& x, const Dims& dims, bool keepdim, SourceLocation where) {
  Tensor y = located("all", where, [&] {
    return truth(count(x, kernels::CompareOp::Equal, dims, keepdim), kernels::CompareOp::Equal, x.dtype());
  });
  autograd::record_without_node({.op = "all", .where = where, .differentiable = false}, {x}, y);
  return y;
}

Tensor sum_to(const Tensor& x, const Shape& sizes, SourceLocation where) {
  // As in PyTorch, the sum of an integer without dimensions is int64 too.
  if (x.sizes() == sizes) return sizes.empty() && !is_floating_point(x.dtype()) ? x.to(kInt64, where) : x;
  check_broadcast(sizes, x.sizes(), where);
  Tensor y = located("sum_to", where, [&] { return kernels::sum_to(x, sizes); });
  if (auto* node = record<SumNode>({.op = "sum_to", .where = where}, {x}, y)) {
    node->sizes = x.sizes();
    node->kept_sizes = sizes;
  }
  return y;
}

}  // namespace brigade
