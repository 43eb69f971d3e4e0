#include <brigade/autograd/ops/loss.h>

#include <brigade/autograd/detail/located.h>
#include <brigade/autograd/ops/arithmetic.h>
#include <brigade/autograd/ops/reduce.h>
#include <brigade/autograd/record.h>

namespace brigade {

namespace {

using autograd::BackwardContext;
using autograd::Node;
using autograd::record;
using autograd::SavedTensor;
using autograd::detail::located;

struct CrossEntropyNode final : Node {
  SavedTensor log_probs, target;
  Tensor denominator;
  int64_t ignore_index = 0;
  void backward(BackwardContext& context) override {
    context.set(0, kernels::cross_entropy_backward(context.grad(), log_probs.unpack(*this), target.unpack(*this),
                                                   denominator, ignore_index));
  }
};

struct PairLossNode : Node {
  SavedTensor x, target;
  Reduction reduction = Reduction::Mean;
};

struct BceWithLogitsNode final : PairLossNode {
  void backward(BackwardContext& context) override {
    const Tensor logits = x.unpack(*this);
    const Tensor& grad = context.grad();
    if (context.needs_input_grad(0))
      context.set(0, kernels::bce_with_logits_backward(grad, logits, target.unpack(*this), reduction));
    if (context.needs_input_grad(1)) {
      // The loss is linear in the target, with slope -x.
      const double count = reduction == Reduction::Mean ? static_cast<double>(logits.numel()) : 1;
      context.set(1, mul(mul(grad, logits, {}), -1 / count, {}));
    }
  }
};

struct MseLossNode final : PairLossNode {
  void backward(BackwardContext& context) override {
    const Tensor slope = kernels::mse_loss_backward(context.grad(), x.unpack(*this), target.unpack(*this), reduction);
    if (context.needs_input_grad(0)) context.set(0, slope);
    if (context.needs_input_grad(1)) context.set(1, neg(slope, {}));
  }
};

template <class N, class K>
Tensor pair_loss(const char* op, const K& kernel, const Tensor& x, const Tensor& target, Reduction reduction,
                 SourceLocation where) {
  Tensor y = located(where, [&] { return kernel(x, target, reduction); });
  if (auto* node = record<N>({.op = op, .where = where}, {x, target}, y)) {
    node->x.save_input(*node, x);
    node->target.save_input(*node, target);
    node->reduction = reduction;
  }
  return y;
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& target, Reduction reduction, int64_t ignore_index,
                     SourceLocation where) {
  const kernels::CrossEntropy result =
      located(where, [&] { return kernels::cross_entropy(logits, target, reduction, ignore_index); });
  if (auto* node = record<CrossEntropyNode>({.op = "cross_entropy", .where = where}, {logits, target}, result.loss)) {
    node->log_probs.save_input(*node, result.log_probs);
    node->target.save_input(*node, target);
    node->denominator = result.denominator;
    node->ignore_index = ignore_index;
  }
  return result.loss;
}

Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& target, Reduction reduction,
                                        SourceLocation where) {
  return pair_loss<BceWithLogitsNode>("binary_cross_entropy_with_logits", kernels::bce_with_logits, logits, target,
                                      reduction, where);
}

Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction reduction, SourceLocation where) {
  return pair_loss<MseLossNode>("mse_loss", kernels::mse_loss, x, target, reduction, where);
}

Tensor l1_loss(const Tensor& x, const Tensor& target, Reduction reduction, SourceLocation where) {
  if (x.sizes() != target.sizes()) {
    throw ShapeError("l1_loss: expected a target like the input " + describe(x) + ", got " + describe(target) +
                         " (called at " + to_string(where) + ")",
                     where);
  }
  Tensor difference = abs(sub(x, target, where), where);
  if (reduction == Reduction::None) return difference;
  return reduction == Reduction::Mean ? mean(difference, {}, false, where) : sum(difference, {}, false, where);
}

}  // namespace brigade
