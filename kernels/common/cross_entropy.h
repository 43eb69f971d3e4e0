// Device-independent parts of the losses against class indices: checks, shapes, and the weight of each class in the
// loss.
#pragma once

#include <brigade/core/host_device.h>
#include <brigade/core/index_error.h>
#include <brigade/kernels/cross_entropy.h>

namespace brigade::kernels {

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
