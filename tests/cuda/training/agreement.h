// When a device result agrees with the CPU's, and identical inputs for both.
#pragma once

#include "on_device.h"

#include <algorithm>
#include <array>

namespace brigade::test {

// Two correct results differ by roundings of their dtype, up to half a unit in the last place each.
//
// float64 and float32: functions (exp, tanh, erf) are off by up to 2 units on each side, and a sum or product of a few
// terms may be evaluated in another order: 8 units. Half types: both sides compute in float and round once per written
// tensor, so they differ by 1 unit if the float values fall on two sides of a rounding boundary; operations of several
// kernels may accumulate two of these: 2 units.
inline double bound(DType dtype, double roundings = 1) {
  switch (dtype) {
    case kFloat64: return roundings * 8 * 0x1p-52;
    case kFloat32: return roundings * 8 * 0x1p-23;
    case kFloat16: return roundings * 2 * 0x1p-10;
    case kBFloat16: return roundings * 2 * 0x1p-7;
    default: return 0;
  }
}

enum class Layout {
  Contiguous,
  // The first dimension varies fastest, every other element, starting at the second: no adjacent elements, nothing
  // aligned.
  Strided,
};
inline const std::array kLayouts{Layout::Contiguous, Layout::Strided};

// The values of `x` in `dtype` (if floating) on `device`, as a leaf that requires grad if x does.
inline Tensor leaf_like(const Tensor& x, DType dtype, Device device, Layout layout = Layout::Contiguous) {
  const TensorOptions options{is_floating_point(x.dtype()) ? dtype : x.dtype(), device};
  Tensor result;
  if (layout == Layout::Contiguous) {
    result = empty(x.sizes(), options);
  } else {
    Shape strides = x.sizes();
    int64_t stride = 2;
    for (int d = 0; d < x.dim(); ++d) {
      strides[d] = stride;
      stride *= std::max<int64_t>(x.sizes()[d], 1);
    }
    result = view::as_strided(empty({stride + 1}, options), x.sizes(), strides, 1);
  }
  kernels::copy(result, kernels::cast(x, options.dtype));
  if (x.requires_grad()) result.requires_grad_();
  return result;
}

// The error of `found` in multiples of the bound: at most 1 if it agrees. Both may be undefined (no gradient).
inline double disagreement(const Tensor& found, const Tensor& expected, DType dtype, double roundings = 1) {
  if (!found.defined() || !expected.defined()) return found.defined() == expected.defined() ? 0 : INFINITY;
  const double off = difference(found, expected);
  return off == 0 ? 0 : off / bound(dtype, roundings);
}

}  // namespace brigade::test
