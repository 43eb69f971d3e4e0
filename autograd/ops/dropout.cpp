#include <brigade/autograd/ops/dropout.h>

#include <brigade/autograd/detail/located.h>
#include <brigade/autograd/record.h>
#include <brigade/kernels/dropout.h>

namespace brigade {

namespace {

// Keeps the place in the random stream instead of a mask; linear in x, so its backward is itself.
struct DropoutNode final : autograd::Node {
  double p = 0;
  PhiloxState state;
  void backward(autograd::BackwardContext& context) override {
    context.set(0, kernels::dropout(context.grad(), p, state));
  }
};

}  // namespace

Tensor dropout(const Tensor& x, double p, bool training, SourceLocation where) {
  if (!(p >= 0 && p <= 1)) {
    throw ValueError("dropout probability has to be between 0 and 1, but got " + std::to_string(p) + " (called at " +
                         to_string(where) + ")",
                     where);
  }
  if (!training || p == 0) return x;
  const PhiloxState state = default_generator().reserve(static_cast<uint64_t>(x.numel()));
  Tensor y = autograd::detail::located(where, [&] { return kernels::dropout(x, p, state); });
  if (auto* node = autograd::record<DropoutNode>({.op = "dropout", .where = where}, {x}, y)) {
    node->p = p;
    node->state = state;
  }
  return y;
}

}  // namespace brigade
