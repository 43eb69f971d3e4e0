// Device-independent parts of the losses: checks, shapes, and the arithmetic of one element.
#pragma once

#include <brigade/core/compiler.h>
#include <brigade/core/index_error.h>
#include <brigade/kernels/loss.h>

#include <cmath>

namespace brigade::kernels {

// --- Elementwise losses: checks, and the loss of one element with its derivatives.

// Throws DeviceError when they are on two devices.
void check_loss_devices(const Tensor& x, const Tensor& target, const char* what);
// Throws ShapeError unless x and target have one shape, DTypeError unless they have one floating
// dtype, DeviceError when they are on two devices.
void check_pair(const Tensor& x, const Tensor& target, const char* what);
// Throws ShapeError unless `grad` has one element or, for Reduction::None, one for each loss.
void check_loss_gradient(const Tensor& grad, const Shape& losses, const char* what);

// `Math` has the device's best implementations of exp, log, log1p and, for an argument in 0..1, log1p_unit.
template <class Math, class C>
BRIGADE_HOST_DEVICE inline C pair_loss_value(PairLossKind kind, C x, C z, C parameter) {
  const C distance = x > z ? x - z : z - x;
  switch (kind) {
    case PairLossKind::Squared: return (x - z) * (x - z);
    case PairLossKind::Absolute: return distance;
    case PairLossKind::SmoothL1:
      return distance < parameter ? C(0.5) * distance * distance / parameter : distance - C(0.5) * parameter;
    case PairLossKind::Huber:
      return distance < parameter ? C(0.5) * distance * distance : parameter * (distance - C(0.5) * parameter);
    case PairLossKind::BinaryCrossEntropy: {
      // NaNs propagate.
      const C yes = Math::log(x);
      const C no = Math::log1p(-x);
      return (z - C(1)) * (no < C(-100) ? C(-100) : no) - z * (yes < C(-100) ? C(-100) : yes);
    }
    case PairLossKind::BceWithLogits: {
      const C magnitude = x > C(0) ? x : -x;
      const C against = x > C(0) ? C(1) - z : z;  // the target's factor; 0 also where x is infinite
      return (against == C(0) ? C(0) : magnitude * against) + Math::log1p_unit(Math::exp(-magnitude));
    }
    case PairLossKind::KlDivergence: return (z == C(0) ? C(0) : z * Math::log(z)) - z * x;
    case PairLossKind::KlDivergenceLog: break;
  }
  return Math::exp(z) * (z - x);
}

// The derivative of the loss with respect to x. At a kink it is 0 for |x - z|, else the slope of the side whose slope
// is not constant.
template <class Math, class C>
BRIGADE_HOST_DEVICE inline C pair_loss_input_slope(PairLossKind kind, C x, C z, C parameter) {
  const C d = x - z;
  switch (kind) {
    case PairLossKind::Squared: return C(2) * d;
    case PairLossKind::Absolute: return static_cast<C>((C(0) < d) - (d < C(0)));
    case PairLossKind::SmoothL1: return d <= -parameter ? C(-1) : d >= parameter ? C(1) : d / parameter;
    case PairLossKind::Huber: return d < -parameter ? -parameter : d > parameter ? parameter : d;
    case PairLossKind::BinaryCrossEntropy: {
      const C spread = (C(1) - x) * x;
      return d / (spread < C(1e-12) ? C(1e-12) : spread);
    }
    case PairLossKind::BceWithLogits: return C(1) / (C(1) + Math::exp(-x)) - z;
    case PairLossKind::KlDivergence: return -z;
    case PairLossKind::KlDivergenceLog: break;
  }
  return -Math::exp(z);
}

// The derivative of the loss with respect to z.
template <class Math, class C>
BRIGADE_HOST_DEVICE inline C pair_loss_target_slope(PairLossKind kind, C x, C z, C parameter) {
  switch (kind) {
    case PairLossKind::BinaryCrossEntropy: return Math::log1p(-x) - Math::log(x);
    case PairLossKind::BceWithLogits: return -x;
    case PairLossKind::KlDivergence: return Math::log(z) + z / z - x;  // NaN at 0, as in PyTorch
    case PairLossKind::KlDivergenceLog: return Math::exp(z) * (z - x + C(1));
    default: return -pair_loss_input_slope<Math>(kind, x, z, parameter);
  }
}

// --- Losses against class indices: checks, shapes, and the weight of each class in the loss.

inline constexpr IndexRole kTargetClass{"cross_entropy", "target", "class"};
inline constexpr IndexRole kNllTargetClass{"nll_loss", "target", "class"};

// Sizes [rows, classes, spatial] of logits; a single [C] counts as one row.
struct ClassSizes {
  int64_t rows = 1, classes = 1, spatial = 1;
};

struct ClassLossPlan {
  ClassSizes sizes;
  Tensor target;              // dense
  Tensor weight, weight_sum;  // dense, in the compute type; the sum [] only with label smoothing
};
// `sizes`, `dtype` and `device` are those of the logits. Throws DTypeError, ShapeError,
// DeviceError, ValueError for a label_smoothing outside 0..1.
ClassLossPlan prepare_class_loss(const char* what, const Shape& sizes, TensorOptions logits, const Tensor& target,
                                 const ClassLossOptions& options);
// [2, the shape of the targets]
Tensor empty_log_sums(const Shape& positions, TensorOptions options);
// Throws ShapeError unless log_sums has the shape, dtype and layout that forward returns.
void check_log_sums(const Tensor& log_sums, const Tensor& logits, const Tensor& target);

// The loss of a position whose target is the class y:
//   keep * w[y] * -log p[y] + share * sum over c of w[c] * -log p[c]
template <class C>
struct ClassShares {
  const C* weight;      // null: all 1
  const C* weight_sum;  // null: the number of classes
  int64_t classes;
  C keep, share;

  BRIGADE_HOST_DEVICE C weight_of(int64_t c) const { return weight ? weight[c] : C(1); }
  BRIGADE_HOST_DEVICE C of_target(int64_t wanted) const { return keep * weight_of(wanted); }
  BRIGADE_HOST_DEVICE C of_each(int64_t c) const { return share * weight_of(c); }
  // The same times a gradient. Without smoothing the other classes get 0 even if the gradient is infinite.
  BRIGADE_HOST_DEVICE C of_each(int64_t c, C slope) const { return share == C(0) ? C(0) : slope * of_each(c); }
  // The sum of the shares of all classes.
  BRIGADE_HOST_DEVICE C total(int64_t wanted) const {
    return of_target(wanted) + (share == C(0) ? C(0) : share * (weight_sum ? *weight_sum : static_cast<C>(classes)));
  }
  // `distance`: the target's logit minus the largest logit; `distances`: the sum over all classes c of w[c] * (logit[c]
  // - largest).
  BRIGADE_HOST_DEVICE C loss(int64_t wanted, C log_sum, C distance, C distances) const {
    const C hard = of_target(wanted) * (log_sum - distance);
    if (share == C(0)) return hard;
    return hard + share * ((weight_sum ? *weight_sum : static_cast<C>(classes)) * log_sum - distances);
  }
};
template <class C>
ClassShares<C> class_shares(const ClassLossPlan& plan, double label_smoothing) {
  return {plan.weight.defined() ? static_cast<const C*>(plan.weight.raw_data()) : nullptr,
          plan.weight_sum.defined() ? static_cast<const C*>(plan.weight_sum.raw_data()) : nullptr, plan.sizes.classes,
          static_cast<C>(1 - label_smoothing),
          static_cast<C>(label_smoothing / static_cast<double>(plan.sizes.classes))};
}

}  // namespace brigade::kernels
