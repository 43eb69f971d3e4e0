// Device-independent parts of clamp.
#pragma once

#include <brigade/core/host_device.h>
#include <brigade/kernels/clamp.h>

#include <algorithm>
#include <limits>
#include <type_traits>

namespace brigade::kernels {

// C: the compute type. A NaN fails every comparison: a NaN x is kept, a NaN bound is returned.
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

// A bound as an element, saturated to the range of an integer type.
template <class C>
C border(Scalar number) {
  if constexpr (std::is_integral_v<C>) {
    // Integer clamps have integer bounds, or infinite ones where a bound is missing.
    constexpr C kLowest = std::numeric_limits<C>::lowest(), kHighest = std::numeric_limits<C>::max();
    if (number.is_floating_point()) return number.to<double>() < 0 ? kLowest : kHighest;
    return static_cast<C>(std::clamp(number.to<int64_t>(), int64_t{kLowest}, int64_t{kHighest}));
  } else {
    return number.to<C>();
  }
}
template <class C>
Clamp<C> clamping(const Borders& borders) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return {border<C>(borders.lower.value_or(-kInfinity)), border<C>(borders.upper.value_or(kInfinity))};
}
template <class C>
ClampBackward<C> clamping_backward(const Borders& borders) {
  return {borders.lower.value_or(0).template to<C>(), borders.upper.value_or(0).template to<C>(),
          borders.lower.has_value(), borders.upper.has_value()};
}

struct ClampPlan {
  Tensor x, out;  // x in the dtype of the result, which is not filled
};
ClampPlan prepare_clamp(const Tensor& x, const Borders& borders);

}  // namespace brigade::kernels
