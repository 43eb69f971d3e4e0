// Numbers kept between two borders, element by element. Floating dtypes and integers, not bool:
// DTypeError.
#pragma once

#include <brigade/core/tensor.h>

#include <optional>

namespace brigade {

// min(max(x, min), max), so that `max` wins where the two cross; a NaN stays one. An integer x
// stays such when the borders are whole, and gives float32 otherwise. No gradient beyond the
// borders, nor on them, as PyTorch (2.15) has it. Throws ValueError when neither is given.
Tensor clamp(const Tensor& x, std::optional<double> min, std::optional<double> max = std::nullopt,
             SourceLocation where = SourceLocation::current());
Tensor clamp_min(const Tensor& x, double min, SourceLocation where = SourceLocation::current());
Tensor clamp_max(const Tensor& x, double max, SourceLocation where = SourceLocation::current());

// Borders that are tensors: broadcast, computed in the common dtype; one of them may be undefined.
// Where x is on a border both get half of the gradient (x all of it where the borders are equal),
// as with `maximum`.
Tensor clamp(const Tensor& x, const Tensor& min, const Tensor& max = {},
             SourceLocation where = SourceLocation::current());
Tensor clamp_min(const Tensor& x, const Tensor& min, SourceLocation where = SourceLocation::current());
Tensor clamp_max(const Tensor& x, const Tensor& max, SourceLocation where = SourceLocation::current());

}  // namespace brigade
