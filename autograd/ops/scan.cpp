// The derivatives are recurrences, which take one pass, need no division, and are differentiable
// themselves.
//
// cumprod: dx[k] = sum over i >= k of g[i] times the product of x[0..i] without x[k]
//                = (x[0] .. x[k-1]) s[k]   with   s[k] = g[k] + x[k+1] s[k+1]
// logcumsumexp: dx[k] = sum over i >= k of g[i] exp(x[k] - y[i])
//                     = exp(x[k] - y[k]) u[k]   with   u[k] = g[k] + exp(y[k] - y[k+1]) u[k+1]
// where no exponent is positive, since y never falls.
#include <brigade/autograd/ops/reduce.h>

#include <brigade/autograd/autocast_mode.h>
#include <brigade/autograd/detail/algebra.h>
#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/ops/arithmetic.h>
#include <brigade/autograd/ops/shape.h>
#include <brigade/autograd/record.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/reduce.h>

#include <limits>

namespace brigade {
namespace {

using namespace autograd::detail::algebra;
using namespace autograd::detail;
using kernels::ScanOp;

// Element i of the result is element i + by of x, and `value` where there is none; by is 1 or -1.
Tensor neighbour(const Tensor& x, int dim, int64_t by, double value) {
  if (x.numel() == 0 || x.dim() == 0) return x.dim() == 0 ? full_like(x, value) : x;
  std::vector<int64_t> pads(static_cast<size_t>(2 * (x.dim() - dim)), 0);
  pads[pads.size() - 2] = -by;
  pads[pads.size() - 1] = by;
  return pad(x, pads, PadMode::Constant, value, {});
}

Tensor cumsum_along(const Tensor& x, int dim, bool reverse, SourceLocation where);

struct CumsumNode final : Node {
  int dim = 0;
  bool reverse = false;
  void backward(BackwardContext& context) override { context.set(0, cumsum_along(context.grad(), dim, !reverse, {})); }
};

Tensor cumsum_along(const Tensor& x, int dim, bool reverse, SourceLocation where) {
  Tensor y = kernels::scan(x, dim, ScanOp::Sum, reverse);
  if (auto* node = record<CumsumNode>({.op = "cumsum", .where = where, .differentiable = is_floating_point(x.dtype())},
                                      {x}, y)) {
    node->dim = dim;
    node->reverse = reverse;
  }
  return y;
}

struct CumprodNode final : Node {
  SavedTensor x;
  int dim = 0;
  void backward(BackwardContext& context) override {
    const Tensor& grad = context.grad();
    const Tensor values = widened(x.unpack(*this));
    const Tensor before = cumprod(neighbour(values, dim, -1, 1), dim, {});
    const Tensor sums = linear_recurrence(widened(grad), neighbour(values, dim, 1, 0), dim, true, {});
    context.set(0, in_dtype(before * sums, grad.dtype()));
  }
};

double lowest_of(DType dtype) {
  return dtype == kFloat64 ? std::numeric_limits<double>::lowest()
                           : static_cast<double>(std::numeric_limits<float>::lowest());
}

struct LogCumsumExpNode final : Node {
  SavedTensor x, y;
  int dim = 0;
  void backward(BackwardContext& context) override {
    if (context.grad().dim() == 0) return context.set(0, context.grad());  // y is x
    const DType dtype = context.grad().dtype();
    const DType wide = is_half(dtype) ? kFloat32 : dtype;
    const Tensor in = x.unpack(*this).to(wide, {});
    // Replace -inf by a finite number: its differences would be NaN.
    const double lowest = lowest_of(wide);
    const Tensor out = maximum(y.unpack(*this).to(wide, {}), full({}, lowest, in.options()), {});
    const Tensor finite = minimum(out, full({}, -lowest, in.options()), {});   // and replace inf
    const Tensor falls = exp_of(neighbour(finite, dim, -1, lowest) - finite);  // exp(y[k-1] - y[k])
    const Tensor sums = linear_recurrence(context.grad().to(wide, {}), neighbour(falls, dim, 1, 0), dim, true, {});
    context.set(0, (exp_of(in - out) * sums).to(dtype, {}));
  }
};

struct LinearRecurrenceNode final : Node {
  SavedTensor a, y;
  int dim = 0;
  bool reverse = false;
  void backward(BackwardContext& context) override {
    const int64_t ahead = reverse ? -1 : 1;
    const Tensor sums = linear_recurrence(context.grad(), neighbour(a.unpack(*this), dim, ahead, 0), dim, !reverse, {});
    if (context.needs_input_grad(0)) context.set(0, sums);
    if (context.needs_input_grad(1)) context.set(1, sums * neighbour(y.unpack(*this), dim, -ahead, 0));
  }
};

}  // namespace

Tensor cumsum(const Tensor& x, int64_t dim, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"cumsum">(where, x)) return cumsum(in[0], dim, where);
  }
  return cumsum_along(x, dimension_of("cumsum", dim, x.dim(), where), false, where);
}

Tensor cumprod(const Tensor& x, int64_t dim, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"cumprod">(where, x)) return cumprod(in[0], dim, where);
  }
  const int at = dimension_of("cumprod", dim, x.dim(), where);
  Tensor y = kernels::scan(x, at, ScanOp::Product, false);
  if (auto* node = record<CumprodNode>(
          {.op = "cumprod", .where = where, .differentiable = is_floating_point(x.dtype())}, {x}, y)) {
    node->x.save_input(*node, x);
    node->dim = at;
  }
  return y;
}

Tensor logcumsumexp(const Tensor& x, int64_t dim, SourceLocation where) {
  const int at = dimension_of("logcumsumexp", dim, x.dim(), where);
  Tensor y = located("logcumsumexp", where, [&] { return kernels::scan(x, at, ScanOp::LogSumExp, false); });
  if (auto* node = record<LogCumsumExpNode>({.op = "logcumsumexp", .where = where}, {x}, y)) {
    node->x.save_input(*node, x);
    node->y.save_output(*node, y);
    node->dim = at;
  }
  return y;
}

Tensor linear_recurrence(const Tensor& b, const Tensor& a, int64_t dim, bool reverse, SourceLocation where) {
  const int at = dimension_of("linear_recurrence", dim, b.dim(), where);
  Tensor y = located("linear_recurrence", where, [&] { return kernels::linear_recurrence(b, a, at, reverse); });
  if (auto* node = record<LinearRecurrenceNode>({.op = "linear_recurrence", .where = where}, {b, a}, y)) {
    node->a.save_input(*node, a);
    node->y.save_output(*node, y);
    node->dim = at;
    node->reverse = reverse;
  }
  return y;
}

}  // namespace brigade
