// The node of dropout, and the check of its probability.
#include <brigade/autograd/ops/activation.h>

#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/record.h>
#include <brigade/kernels/activation.h>

namespace brigade {
namespace {

Tensor dropout_at(const Tensor& x, double p, const PhiloxState& state, SourceLocation where);

// Keeps the position in the random stream instead of a mask; linear in x, so its backward is itself.
struct DropoutNode final : autograd::Node {
  double p = 0;
  PhiloxState state;
  void backward(autograd::BackwardContext& context) override {
    context.set(0, context.create_graph() ? dropout_at(context.grad(), p, state, {})
                                          : kernels::dropout(context.grad(), p, state));
  }
};

Tensor dropout_at(const Tensor& x, double p, const PhiloxState& state, SourceLocation where) {
  Tensor y = autograd::detail::located(where, [&] { return kernels::dropout(x, p, state); });
  if (auto* node = autograd::record<DropoutNode>({.op = "dropout", .where = where}, {x}, y)) {
    node->p = p;
    node->state = state;
  }
  return y;
}

}  // namespace

Tensor dropout(const Tensor& x, double p, bool training, SourceLocation where) {
  if (!(p >= 0 && p <= 1)) {
    throw ValueError(where, "dropout probability has to be between 0 and 1, but got {}", p);
  }
  if (!training || p == 0) return x;
  return dropout_at(x, p, default_generator().reserve(static_cast<uint64_t>(x.numel())), where);
}

}  // namespace brigade
