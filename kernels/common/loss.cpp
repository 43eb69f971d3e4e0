// Device-independent parts of the losses: names, checks and shapes.
#include <brigade/kernels/loss.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/common/arguments.h>
#include <brigade/kernels/common/loss.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/reduce.h>

namespace brigade::kernels {

// --- The name of each loss, and checks of inputs, targets and gradients.

const char* name(PairLossKind kind) noexcept {
  switch (kind) {
    case PairLossKind::Squared: return "mse_loss";
    case PairLossKind::Absolute: return "l1_loss";
    case PairLossKind::SmoothL1: return "smooth_l1_loss";
    case PairLossKind::Huber: return "huber_loss";
    case PairLossKind::BinaryCrossEntropy: return "binary_cross_entropy";
    case PairLossKind::BceWithLogits: return "binary_cross_entropy_with_logits";
    case PairLossKind::KlDivergence:
    case PairLossKind::KlDivergenceLog: break;
  }
  return "kl_div";
}

void check_loss_devices(const Tensor& x, const Tensor& target, const char* what) {
  if (x.device() == target.device()) return;
  throw DeviceError("{}: input and target must be on one device, got {} and {}", what, x.device(), target.device());
}

void check_pair(const Tensor& x, const Tensor& target, const char* what) {
  check_loss_devices(x, target, what);
  if (x.sizes() != target.sizes()) {
    throw ShapeError("{}: expected a target like the input {}, got {}", what, describe(x), describe(target));
  }
  if (x.dtype() != target.dtype()) {
    throw DTypeError("{}: expected a target of the input's dtype {}, got {}; convert it with .to()", what,
                     brigade::name(x.dtype()), brigade::name(target.dtype()));
  }
  check_floating(x.dtype(), what);
}

void check_loss_gradient(const Tensor& grad, const Shape& losses, const char* what) {
  if (grad.numel() == 1 || grad.sizes() == losses) return;
  throw ShapeError("{}: expected a gradient [] or {}, got {}", what, losses, describe(grad));
}

// --- Checks of logits, targets and class weights, and shapes of the losses and row sums.

namespace {

DType wide(DType dtype) { return is_half(dtype) ? kFloat32 : dtype; }

Shape pairs_of(const Shape& positions) {
  Shape sizes = positions;
  sizes.insert(0, 2);
  return sizes;
}

void check_devices(const char* what, Device logits, const Tensor& other, const char* which) {
  if (logits == other.device()) return;
  throw DeviceError("{}: input and {} must be on one device, got {} and {}", what, which, logits, other.device());
}

ClassSizes check_classes(const char* what, const Shape& sizes, const Tensor& target) {
  if (target.dtype() != kInt64) throw DTypeError("{}: expected int64 targets, got {}", what, name(target.dtype()));
  if (sizes.empty()) throw ShapeError("{}: expected logits [N, C, ...] or [C], got {}", what, sizes);
  const int class_dim = sizes.size() == 1 ? 0 : 1;
  Shape expected = sizes;
  expected.erase(class_dim);
  if (target.sizes() != expected) {
    throw ShapeError("{}: logits {} need targets {}, got {}", what, sizes, expected, target.sizes());
  }
  ClassSizes result{sizes.size() == 1 ? 1 : sizes[0], sizes[class_dim], 1};
  for (int d = 2; d < sizes.size(); ++d)
    result.spatial *= sizes[d];
  return result;
}

void check_weight(const char* what, const Tensor& weight, const ClassSizes& sizes) {
  if (!is_floating_point(weight.dtype()))
    throw DTypeError("{}: weight must have a floating dtype, got {}", what, name(weight.dtype()));
  if (weight.sizes() != Shape{sizes.classes}) {
    throw ShapeError("{}: weight must have one element for each of the {} classes, got {}", what, sizes.classes,
                     describe(weight));
  }
}

}  // namespace

ClassLossPlan prepare_class_loss(const char* what, const Shape& sizes, TensorOptions logits, const Tensor& target,
                                 const ClassLossOptions& options) {
  check_devices(what, logits.device, target, "target");
  ClassLossPlan plan;
  plan.sizes = check_classes(what, sizes, target);
  if (!is_floating_point(logits.dtype)) {
    throw DTypeError("{}: expected logits of a floating dtype, got {}; convert with .to(kFloat32)", what,
                     name(logits.dtype));
  }
  if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1)) {
    throw ValueError("{}: label_smoothing must be between 0.0 and 1.0, got {}", what, options.label_smoothing);
  }
  plan.target = contiguous(target);
  if (options.weight.defined()) {
    check_devices(what, logits.device, options.weight, "weight");
    check_weight(what, options.weight, plan.sizes);
    plan.weight = contiguous(cast(options.weight, wide(logits.dtype)));
    if (options.label_smoothing > 0) plan.weight_sum = sum(plan.weight, {});
  }
  return plan;
}

Tensor empty_log_sums(const Shape& positions, TensorOptions options) { return empty(pairs_of(positions), options); }

void check_log_sums(const Tensor& log_sums, const Tensor& logits, const Tensor& target) {
  const Shape sizes = pairs_of(target.sizes());
  if (log_sums.sizes() == sizes && log_sums.dtype() == wide(logits.dtype()) && log_sums.is_contiguous()) return;
  throw ShapeError("cross_entropy backward: log_sums must be {} as forward gave them, got {}", sizes,
                   describe(log_sums));
}

}  // namespace brigade::kernels
