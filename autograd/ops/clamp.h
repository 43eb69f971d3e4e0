// Elementwise clamp to [min, max]. Floating dtypes and integers; throws DTypeError for bool.
#pragma once

#include <brigade/core/tensor.h>

#include <optional>

namespace brigade {

// min(max(x, min), max), so that `max` wins where the two cross; a NaN stays one. An integer x
// stays such between integers, and gives float32 when a border is floating. No gradient beyond the
// borders, nor on them, as PyTorch (2.15) has it. Throws ValueError when neither is given.
Tensor clamp(const Tensor& x, std::optional<Scalar> min, std::optional<Scalar> max = std::nullopt,
             SourceLocation where = SourceLocation::current());
Tensor clamp_min(const Tensor& x, Scalar min, SourceLocation where = SourceLocation::current());
Tensor clamp_max(const Tensor& x, Scalar max, SourceLocation where = SourceLocation::current());

// Borders that are tensors: broadcast, computed in the common dtype; one of them may be undefined.
// Where x is on a border both get half of the gradient (x all of it where the borders are equal),
// as with `maximum`.
Tensor clamp(const Tensor& x, const Tensor& min, const Tensor& max = {},
             SourceLocation where = SourceLocation::current());
Tensor clamp_min(const Tensor& x, const Tensor& min, SourceLocation where = SourceLocation::current());
Tensor clamp_max(const Tensor& x, const Tensor& max, SourceLocation where = SourceLocation::current());

}  // namespace brigade
