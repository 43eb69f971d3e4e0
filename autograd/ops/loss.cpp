// One node for all losses of an input and a target, and their derivatives by operations.
#include <brigade/autograd/ops/loss.h>

#include <brigade/autograd/autocast_mode.h>
#include <brigade/autograd/detail/algebra.h>
#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/ops/arithmetic.h>
#include <brigade/autograd/record.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>

namespace brigade {
namespace {

using namespace autograd::detail::algebra;
using namespace autograd::detail;
using kernels::PairLoss;
using kernels::PairLossKind;
using kernels::PairSide;

// 1 where |d| < limit. At the limit itself the second derivative is that of the outer side, as in PyTorch.
Tensor within(const Tensor& d, double limit) { return (abs_of(d) < limit).to(d.dtype(), {}); }

// The derivatives of kernels/common/loss.h by differentiable operations.
Tensor input_slope(const PairLoss& loss, const Tensor& x, const Tensor& z) {
  const Tensor d = x - z;
  switch (loss.kind) {
    case PairLossKind::Squared: return d * 2.0;
    case PairLossKind::Absolute: return sign_of(d);
    case PairLossKind::SmoothL1: {
      const Tensor inside = within(d, loss.parameter);
      return d * (inside * (1 / loss.parameter)) + sign_of(d) * (1.0 - inside);
    }
    case PairLossKind::Huber: {
      const Tensor inside = within(d, loss.parameter);
      const Tensor outside = (1.0 - inside) * loss.parameter;
      return d * inside + sign_of(d) * outside;
    }
    case PairLossKind::BinaryCrossEntropy: {
      const Tensor spread = (1.0 - x) * x;
      return d / maximum(spread, full({}, 1e-12, spread.options()), {});
    }
    case PairLossKind::BceWithLogits: return sigmoid_of(x) - z;
    case PairLossKind::KlDivergence: return -z;
    case PairLossKind::KlDivergenceLog: break;
  }
  return -exp_of(z);
}

Tensor target_slope(const PairLoss& loss, const Tensor& x, const Tensor& z) {
  switch (loss.kind) {
    case PairLossKind::BinaryCrossEntropy: return log_of(1.0 - x) - log_of(x);
    case PairLossKind::BceWithLogits: return -x;
    case PairLossKind::KlDivergence: return log_of(z) + 1.0 - x;
    case PairLossKind::KlDivergenceLog: return exp_of(z) * (z - x + 1.0);
    default: return -input_slope(loss, x, z);
  }
}

struct PairLossNode final : Node {
  SavedTensor x, target;
  PairLoss loss;
  Reduction reduction = Reduction::Mean;

  void backward(BackwardContext& context) override {
    const Tensor input = x.unpack(*this);
    const Tensor z = target.unpack(*this);
    for (const PairSide side : {PairSide::Input, PairSide::Target}) {
      const uint32_t i = side == PairSide::Input ? 0 : 1;
      if (!context.needs_input_grad(i)) continue;
      context.set(i, context.create_graph()
                         ? composite(context.grad(), input, z, side)
                         : kernels::pair_loss_backward(context.grad(), input, z, loss, side, reduction));
    }
  }

  Tensor composite(const Tensor& grad, const Tensor& input, const Tensor& z, PairSide side) const {
    const Tensor a = widened(input);
    const Tensor b = widened(z);
    const Tensor slope = side == PairSide::Input ? input_slope(loss, a, b) : target_slope(loss, a, b);
    const double count = reduction == Reduction::Mean ? static_cast<double>(input.numel()) : 1;
    return in_dtype(slope * (widened(grad) * (1 / count)), input.dtype());
  }
};

// Whether an input and a target of different dtypes are promoted to the common one.
bool promotes(PairLossKind kind, DType x, DType target) {
  switch (kind) {
    case PairLossKind::BinaryCrossEntropy: return false;
    case PairLossKind::BceWithLogits:
    case PairLossKind::KlDivergence:
    case PairLossKind::KlDivergenceLog: return is_floating_point(x) && is_floating_point(target);
    default: return true;
  }
}

Tensor pair_loss(const OpInfo& info, const PairLoss& loss, const Tensor& x, const Tensor& target, Reduction reduction) {
  if (x.dtype() != target.dtype() && promotes(loss.kind, x.dtype(), target.dtype())) {
    const DType dtype = kernels::result_type({x, target});
    return pair_loss(info, loss, x.to(dtype, info.where), target.to(dtype, info.where), reduction);
  }
  Tensor y = located(info.where, [&] { return kernels::pair_loss(x, target, loss, reduction); });
  if (auto* node = record<PairLossNode>(info, {x, target}, y)) {
    node->x.save_input(*node, x);
    node->target.save_input(*node, target);
    node->loss = loss;
    node->reduction = reduction;
    node->adds_samples = reduction == Reduction::Sum;
  }
  return y;
}

// Losses times a weight that broadcasts to their shape.
Tensor weighted(const char* what, const Tensor& losses, const Tensor& weight, SourceLocation where) {
  const Tensor result = mul(losses, weight, where);
  if (result.sizes() == losses.sizes()) return in_dtype(result, losses.dtype());
  throw ShapeError(where, "{}: expected a weight that broadcasts to {}, got {}", what, losses.sizes(),
                   describe(weight));
}

}  // namespace

Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction reduction, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"mse_loss">(where, x, target))
      return mse_loss(in[0], in[1], reduction, where);
  }
  return pair_loss({.op = "mse_loss", .where = where}, {PairLossKind::Squared}, x, target, reduction);
}

Tensor l1_loss(const Tensor& x, const Tensor& target, Reduction reduction, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"l1_loss">(where, x, target))
      return l1_loss(in[0], in[1], reduction, where);
  }
  return pair_loss({.op = "l1_loss", .where = where}, {PairLossKind::Absolute}, x, target, reduction);
}

Tensor smooth_l1_loss(const Tensor& x, const Tensor& target, Reduction reduction, double beta, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"smooth_l1_loss">(where, x, target))
      return smooth_l1_loss(in[0], in[1], reduction, beta, where);
  }
  if (!(beta >= 0)) throw ValueError(where, "smooth_l1_loss: expected a beta that is not negative, got {}", beta);
  if (beta == 0) return l1_loss(x, target, reduction, where);
  return pair_loss({.op = "smooth_l1_loss", .where = where}, {PairLossKind::SmoothL1, beta}, x, target, reduction);
}

Tensor huber_loss(const Tensor& x, const Tensor& target, Reduction reduction, double delta, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"huber_loss">(where, x, target))
      return huber_loss(in[0], in[1], reduction, delta, where);
  }
  if (!(delta > 0)) throw ValueError(where, "huber_loss: expected a delta above 0, got {}", delta);
  return pair_loss({.op = "huber_loss", .where = where}, {PairLossKind::Huber, delta}, x, target, reduction);
}

Tensor binary_cross_entropy(const Tensor& x, const Tensor& target, const BCELossOptions& options,
                            SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"binary_cross_entropy">(where, x, target, options.weight))
      return binary_cross_entropy(in[0], in[1], {.weight = in[2], .reduction = options.reduction}, where);
  }
  const bool plain = !options.weight.defined();
  const Tensor losses = pair_loss({.op = "binary_cross_entropy", .where = where}, {PairLossKind::BinaryCrossEntropy}, x,
                                  target, plain ? options.reduction : Reduction::None);
  return plain ? losses
               : reduced(weighted("binary_cross_entropy", losses, options.weight, where), options.reduction, where);
}

Tensor binary_cross_entropy(const Tensor& x, const Tensor& target, Reduction reduction, SourceLocation where) {
  return binary_cross_entropy(x, target, BCELossOptions{.reduction = reduction}, where);
}

Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& target,
                                        const BCEWithLogitsLossOptions& options, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"binary_cross_entropy_with_logits">(where, logits, target, options.weight,
                                                                                  options.pos_weight))
      return binary_cross_entropy_with_logits(
          in[0], in[1], {.weight = in[2], .reduction = options.reduction, .pos_weight = in[3]}, where);
  }
  const OpInfo info{.op = "binary_cross_entropy_with_logits", .where = where};
  const PairLoss loss{PairLossKind::BceWithLogits};
  if (!options.weight.defined() && !options.pos_weight.defined())
    return pair_loss(info, loss, logits, target, options.reduction);
  Tensor losses = pair_loss(info, loss, logits, target, Reduction::None);
  if (options.pos_weight.defined()) {
    // The losses for targets 1 and 0, weighted by the target.
    const Tensor yes = pair_loss(info, loss, logits, ones_like(target), Reduction::None);
    const Tensor no = pair_loss(info, loss, logits, zeros_like(target), Reduction::None);
    losses = add(weighted(info.op, mul(yes, target, where), options.pos_weight, where),
                 mul(no, sub(1.0, target, where), where), where);
  }
  if (options.weight.defined()) losses = weighted(info.op, losses, options.weight, where);
  return reduced(losses, options.reduction, where);
}

Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& target, Reduction reduction,
                                        SourceLocation where) {
  return binary_cross_entropy_with_logits(logits, target, BCEWithLogitsLossOptions{.reduction = reduction}, where);
}

Tensor kl_div(const Tensor& x, const Tensor& target, KLDivReduction reduction, bool log_target, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"kl_div">(where, x, target))
      return kl_div(in[0], in[1], reduction, log_target, where);
  }
  const PairLoss loss{log_target ? PairLossKind::KlDivergenceLog : PairLossKind::KlDivergence};
  const Reduction plain = reduction == KLDivReduction::None   ? Reduction::None
                          : reduction == KLDivReduction::Mean ? Reduction::Mean
                                                              : Reduction::Sum;
  const Tensor y = pair_loss({.op = "kl_div", .where = where}, loss, x, target, plain);
  if (reduction != KLDivReduction::BatchMean || x.dim() == 0) return y;
  return div(y, static_cast<double>(x.size(0)), where);
}

}  // namespace brigade
