// Elementwise clamp to [min, max]. Floating dtypes and integers; throws DTypeError for bool.
#pragma once

#include <brigade/core/tensor.h>

#include <optional>

namespace brigade {

// min(max(x, min), max), so that `max` wins if min > max; a NaN stays NaN. An integer x keeps its dtype with integer
// bounds and gives float32 with a floating bound. The gradient is 0 outside the bounds and at them, as in PyTorch
// (2.15). Throws ValueError when neither bound is given.
Tensor clamp(const Tensor& x, std::optional<Scalar> min, std::optional<Scalar> max = std::nullopt,
             SourceLocation where = SourceLocation::current());
Tensor clamp_min(const Tensor& x, Scalar min, SourceLocation where = SourceLocation::current());
Tensor clamp_max(const Tensor& x, Scalar max, SourceLocation where = SourceLocation::current());

// Tensor bounds: broadcast, computed in the common dtype; one of them may be undefined. Where x equals a bound, both
// get half of the gradient (x gets all of it if the bounds are equal), as with `maximum`.
Tensor clamp(const Tensor& x, const Tensor& min, const Tensor& max = {},
             SourceLocation where = SourceLocation::current());
Tensor clamp_min(const Tensor& x, const Tensor& min, SourceLocation where = SourceLocation::current());
Tensor clamp_max(const Tensor& x, const Tensor& max, SourceLocation where = SourceLocation::current());

}  // namespace brigade
