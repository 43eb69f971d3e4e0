// What clamp of every device shares.
#pragma once

#include <brigade/core/host_device.h>
#include <brigade/kernels/clamp.h>

#include <limits>
#include <type_traits>

namespace brigade::kernels {

// C: the compute type. A NaN fails every comparison: as x it is kept, as a border it is taken.
template <class C>
struct Clamp {
  C lower, upper;
  BRIGADE_HOST_DEVICE C operator()(C x) const {
    x = x != x || x >= lower ? x : lower;
    return x != x || x <= upper ? x : upper;
  }
};
template <class C>
struct ClampBackward {
  C lower, upper;
  bool has_lower, has_upper;
  BRIGADE_HOST_DEVICE C operator()(C grad, C x) const {
    return (!has_lower || x > lower) && (!has_upper || x < upper) ? grad : C(0);
  }
};

// A border as an element; beyond the range of an integer type it is the end of that range.
template <class C>
C border(double value) {
  if constexpr (std::is_integral_v<C>) {
    if (value <= static_cast<double>(std::numeric_limits<C>::lowest())) return std::numeric_limits<C>::lowest();
    if (value >= static_cast<double>(std::numeric_limits<C>::max())) return std::numeric_limits<C>::max();
  }
  return static_cast<C>(value);
}
template <class C>
Clamp<C> clamping(const Borders& borders) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return {border<C>(borders.lower.value_or(-kInfinity)), border<C>(borders.upper.value_or(kInfinity))};
}
template <class C>
ClampBackward<C> clamping_backward(const Borders& borders) {
  return {static_cast<C>(borders.lower.value_or(0)), static_cast<C>(borders.upper.value_or(0)),
          borders.lower.has_value(), borders.upper.has_value()};
}

struct ClampPlan {
  Tensor x, out;  // x in the dtype of the result, which is not filled
};
ClampPlan prepare_clamp(const Tensor& x, const Borders& borders);

}  // namespace brigade::kernels
