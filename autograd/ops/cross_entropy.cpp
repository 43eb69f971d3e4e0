// The nodes of cross_entropy and nll_loss; probability targets use a composite of other operations.
#include <brigade/autograd/ops/loss.h>

#include <brigade/autograd/autocast_mode.h>
#include <brigade/autograd/detail/algebra.h>
#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/ops/activation.h>
#include <brigade/autograd/ops/arithmetic.h>
#include <brigade/autograd/ops/reduce.h>
#include <brigade/autograd/ops/shape.h>
#include <brigade/autograd/record.h>
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/loss.h>
#include <brigade/kernels/reduce.h>

namespace brigade {
namespace {

using namespace autograd::detail::algebra;
using namespace autograd::detail;
using kernels::BinaryOp;
using kernels::ClassLossOptions;
using kernels::CompareOp;

int class_dim(int dims) { return dims == 1 ? 0 : 1; }

// [C] as [C, 1, ...], which broadcasts against logits of `dims` dimensions.
Tensor per_class(const Tensor& values, int dims) {
  Shape sizes{values.numel()};
  for (int d = 2; d < dims; ++d)
    sizes.push_back(1);
  return values.reshape(sizes, {});
}

struct ClassLossNode : Node {
  SavedTensor target, weight;
  Tensor denominator;
  ClassLossOptions options;  // without the weight

  void save(const Tensor& classes, const Tensor& divisor, const ClassLossOptions& how) {
    target.save_input(*this, classes);
    denominator = divisor;
    adds_samples = how.reduction == Reduction::Sum;
    options = {how.reduction, how.ignore_index, {}, how.label_smoothing};
    weight.save_input(*this, how.weight);
  }
  ClassLossOptions with_weight() {
    return {options.reduction, options.ignore_index, weight.unpack(*this), options.label_smoothing};
  }

  // The gradient of each position's loss, broadcastable over the classes, in the dtype of the computation.
  Tensor slope(const Tensor& grad, int dims) const {
    const Tensor g = widened(grad);
    if (options.reduction == Reduction::None) return g.unsqueeze(class_dim(dims), {});
    if (!denominator.defined()) return g;
    // If no target counts, the gradient is 0, not 0 / 0.
    const Tensor nothing = kernels::compare_scalar(denominator, 0, CompareOp::Equal);
    const Tensor divisor = kernels::binary(denominator, kernels::cast(nothing, kFloat64), BinaryOp::Add);
    return g / kernels::cast(divisor, g.dtype());
  }
  // The weight of each class in the loss of a position (kernels/common/loss.h): a constant with the shape of
  // the logits.
  Tensor shares(const Tensor& classes, const Shape& sizes, DType dtype) {
    const int dims = sizes.size();
    const int dim = class_dim(dims);
    const Tensor wanted = view::unsqueeze(classes, dim);
    const Tensor index = arange(0, sizes[dim], 1, {kInt64, classes.device()});
    Tensor result = kernels::cast(kernels::compare(per_class(index, dims), wanted, CompareOp::Equal), dtype);
    if (options.label_smoothing > 0) {
      const double each = options.label_smoothing / static_cast<double>(sizes[dim]);
      result = kernels::binary_scalar(result, 1 - options.label_smoothing, BinaryOp::Mul, false);
      result = kernels::binary_scalar(result, each, BinaryOp::Add, false);
    }
    if (const Tensor weights = weight.unpack(*this); weights.defined())
      result = kernels::binary(result, per_class(kernels::cast(weights, dtype), dims), BinaryOp::Mul);
    const Tensor counts =
        kernels::compare_scalar(wanted, static_cast<double>(options.ignore_index), CompareOp::NotEqual);
    return kernels::binary(result, kernels::cast(counts, dtype), BinaryOp::Mul);
  }
};

struct CrossEntropyNode final : ClassLossNode {
  SavedTensor logits, log_sums;

  void backward(BackwardContext& context) override {
    const Tensor x = logits.unpack(*this);
    const Tensor classes = target.unpack(*this);
    if (context.create_graph()) return context.set(0, composite(context.grad(), x, classes));
    context.set(0, kernels::cross_entropy_backward(context.grad(), x, classes, log_sums.unpack(*this), denominator,
                                                   with_weight()));
  }
  // slope * (sum of the shares * softmax - shares)
  Tensor composite(const Tensor& grad, const Tensor& x, const Tensor& classes) {
    const Tensor wide = widened(x);
    const int dim = class_dim(x.dim());
    const Tensor share = shares(classes, x.sizes(), wide.dtype());
    const Tensor total = kernels::sum(share, {.dims = {dim}, .keepdim = true});
    const Tensor pull = softmax(wide, dim, {}) * total - share;
    return in_dtype(pull * slope(grad, x.dim()), x.dtype());
  }
};

struct NllLossNode final : ClassLossNode {
  Shape sizes;

  void backward(BackwardContext& context) override {
    const Tensor classes = target.unpack(*this);
    const Tensor& grad = context.grad();
    if (!context.create_graph())
      return context.set(0, kernels::nll_loss_backward(grad, sizes, classes, denominator, with_weight()));
    const Tensor g = slope(grad, sizes.size());
    context.set(0, in_dtype(g * -shares(classes, sizes, g.dtype()), grad.dtype()));
  }
};

// Targets that are probabilities: a composite.
Tensor soft_cross_entropy(const Tensor& logits, const Tensor& target, const CrossEntropyLossOptions& options,
                          SourceLocation where) {
  if (logits.dim() == 0 || target.sizes() != logits.sizes()) {
    throw ShapeError(where,
                     "cross_entropy: expected probabilities like the logits {}, got {}; class indices have to be int64",
                     describe(logits), describe(target));
  }
  if (options.ignore_index >= 0) {
    throw ValueError(where, "cross_entropy: ignore_index is not supported for a target of probabilities, got {}",
                     options.ignore_index);
  }
  if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1)) {
    throw ValueError(where, "cross_entropy: label_smoothing must be between 0.0 and 1.0, got {}",
                     options.label_smoothing);
  }
  const int dim = class_dim(logits.dim());
  const int64_t classes = logits.size(dim);
  Tensor share = widened(target);
  if (options.label_smoothing > 0) {
    share = add(mul(share, 1 - options.label_smoothing, where), options.label_smoothing / static_cast<double>(classes),
                where);
  }
  if (options.weight.defined()) {
    if (options.weight.sizes() != Shape{classes}) {
      throw ShapeError(where, "cross_entropy: weight must have one element for each of the {} classes, got {}", classes,
                       describe(options.weight));
    }
    share = mul(share, per_class(options.weight, logits.dim()), where);
  }
  const Tensor losses =
      neg(sum(mul(log_softmax(widened(logits), dim, where), share, where), {dim}, false, where), where);
  const DType dtype = kernels::result_type({logits, target, options.weight});
  return in_dtype(reduced(losses, options.reduction, where), dtype);
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& target, const CrossEntropyLossOptions& options,
                     SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"cross_entropy">(where, logits, target, options.weight)) {
      CrossEntropyLossOptions cast = options;
      cast.weight = in[2];
      return cross_entropy(in[0], in[1], cast, where);
    }
  }
  if (is_floating_point(target.dtype())) return soft_cross_entropy(logits, target, options, where);
  const ClassLossOptions how{options.reduction, options.ignore_index, options.weight, options.label_smoothing};
  const kernels::CrossEntropy result = located(where, [&] { return kernels::cross_entropy(logits, target, how); });
  if (auto* node = record<CrossEntropyNode>({.op = "cross_entropy", .where = where}, {logits, target}, result.loss)) {
    node->save(target, result.denominator, how);
    node->logits.save_input(*node, logits);
    node->log_sums.save_input(*node, result.log_sums);
  }
  return result.loss;
}

Tensor cross_entropy(const Tensor& logits, const Tensor& target, Reduction reduction, int64_t ignore_index,
                     SourceLocation where) {
  return cross_entropy(logits, target, CrossEntropyLossOptions{.ignore_index = ignore_index, .reduction = reduction},
                       where);
}

Tensor nll_loss(const Tensor& log_probs, const Tensor& target, const NLLLossOptions& options, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"nll_loss">(where, log_probs, target, options.weight)) {
      NLLLossOptions cast = options;
      cast.weight = in[2];
      return nll_loss(in[0], in[1], cast, where);
    }
  }
  const ClassLossOptions how{options.reduction, options.ignore_index, options.weight, 0};
  const kernels::NllLoss result = located(where, [&] { return kernels::nll_loss(log_probs, target, how); });
  if (auto* node = record<NllLossNode>({.op = "nll_loss", .where = where}, {log_probs, target}, result.loss)) {
    node->save(target, result.denominator, how);
    node->sizes = log_probs.sizes();
  }
  return result.loss;
}

Tensor nll_loss(const Tensor& log_probs, const Tensor& target, Reduction reduction, SourceLocation where) {
  return nll_loss(log_probs, target, NLLLossOptions{.reduction = reduction}, where);
}

}  // namespace brigade
