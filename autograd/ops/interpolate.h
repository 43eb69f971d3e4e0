// Resizing images [N, C, H, W]; floating dtypes. Values as PyTorch's interpolate.
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/kernels/interpolate.h>

#include <array>
#include <optional>

namespace brigade {

// One of `size` and `scale_factor`: height and width of the result, or factors of the input's (rounded down; positions
// follow the factors, not the rounded sizes).
struct InterpolateOptions {
  std::optional<std::array<int64_t, 2>> size = std::nullopt;
  std::optional<std::array<double, 2>> scale_factor = std::nullopt;
  InterpolateMode mode = InterpolateMode::Nearest;
  bool align_corners = false;  // Bilinear only
};

// Throws ValueError unless one of size and scale_factor is given, and for factors that are not positive; ShapeError
// when the input or the result is empty, or has not 4 dimensions.
Tensor interpolate(const Tensor& x, const InterpolateOptions& options,
                   SourceLocation where = SourceLocation::current());

}  // namespace brigade
