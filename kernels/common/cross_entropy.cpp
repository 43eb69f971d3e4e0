// Checks of logits, targets and class weights, and shapes of the losses and row sums.
#include <brigade/kernels/cross_entropy.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/common/cross_entropy.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/reduce.h>

#include <string>

namespace brigade::kernels {

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
