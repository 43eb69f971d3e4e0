// One node for softmax and log_softmax, which keeps the result for backward.
#include <brigade/autograd/ops/activation.h>

#include <brigade/autograd/autocast_mode.h>
#include <brigade/autograd/detail/algebra.h>
#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/ops/arithmetic.h>
#include <brigade/autograd/record.h>
#include <brigade/kernels/activation.h>

namespace brigade {
namespace {

using namespace autograd::detail::algebra;

struct SoftmaxNode final : autograd::Node {
  autograd::SavedTensor y;
  int dim = 0;
  bool is_log = false;
  void backward(autograd::BackwardContext& context) override {
    const Tensor result = y.unpack(*this);
    if (context.create_graph()) {
      context.set(0, differentiable(context.grad(), result));
      return;
    }
    context.set(0, is_log ? kernels::log_softmax_backward(context.grad(), result, dim)
                          : kernels::softmax_backward(context.grad(), result, dim));
  }

 private:
  // The formulas of the kernels: g - exp(y) sum(g), and y (g - sum(g y)).
  Tensor differentiable(const Tensor& grad, const Tensor& result) const {
    if (is_log) return grad - exp_of(result) * sum_over(grad, {dim});
    const Tensor dot = sum_over(grad * result, {dim});
    return result * (grad - dot);
  }
};

Tensor apply(const char* op, const Tensor& x, int64_t dim, bool is_log, SourceLocation where) {
  const int at = autograd::detail::dimension_of(op, dim, x.dim(), where);
  Tensor y = autograd::detail::located(op, where,
                                       [&] { return is_log ? kernels::log_softmax(x, at) : kernels::softmax(x, at); });
  if (auto* node = autograd::record<SoftmaxNode>({.op = op, .where = where}, {x}, y)) {
    node->y.save_output(*node, y);
    node->dim = at;
    node->is_log = is_log;
  }
  return y;
}

}  // namespace

Tensor softmax(const Tensor& x, int64_t dim, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"softmax">(where, x)) return softmax(in[0], dim, where);
  }
  return apply("softmax", x, dim, false, where);
}
Tensor softmin(const Tensor& x, int64_t dim, SourceLocation where) { return softmax(neg(x, where), dim, where); }
Tensor log_softmax(const Tensor& x, int64_t dim, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"log_softmax">(where, x)) return log_softmax(in[0], dim, where);
  }
  return apply("log_softmax", x, dim, true, where);
}

}  // namespace brigade
