// Numbers kept between two borders, element by element.
#pragma once

#include <brigade/kernels/kernel.h>

#include <optional>

namespace brigade::kernels {

struct Borders {
  std::optional<Scalar> lower, upper;
};

// min(max(x, lower), upper); a NaN, in x or as a border, stays one. Integers stay such between
// integers, and give float32 beside a floating border. Throws DTypeError for bool.
extern Kernel<Tensor(const Tensor& x, const Borders& borders)> clamp;
// grad where lower < x < upper, 0 elsewhere (also on the borders). Floating dtypes.
extern Kernel<Tensor(const Tensor& grad, const Tensor& x, const Borders& borders)> clamp_backward;

}  // namespace brigade::kernels
