// Clamps numbers to two bounds, element by element.
#pragma once

#include <brigade/kernels/kernel.h>

#include <optional>

namespace brigade::kernels {

struct Borders {
  std::optional<Scalar> lower, upper;
};

// min(max(x, lower), upper); a NaN in x or as a bound propagates. Integers stay integers with integer bounds, and give
// float32 with a floating bound. Throws DTypeError for bool.
extern Kernel<Tensor(const Tensor& x, const Borders& borders)> clamp;
// grad where lower < x < upper, 0 elsewhere (also at the bounds). Floating dtypes.
extern Kernel<Tensor(const Tensor& grad, const Tensor& x, const Borders& borders)> clamp_backward;

}  // namespace brigade::kernels
