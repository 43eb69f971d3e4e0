// Resizing images [N, C, H, W] and sequences [N, C, L]; floating dtypes. Results match PyTorch's interpolate.
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/kernels/pool.h>

#include <optional>
#include <vector>

namespace brigade {

// Set either `size`, the sizes of the result, or `scale_factor`, factors of the input's sizes (rounded down; positions
// follow the factors, not the rounded sizes). One number for each of H and W, or one for L.
struct InterpolateOptions {
  std::optional<Shape> size = std::nullopt;
  std::optional<std::vector<double>> scale_factor = std::nullopt;
  // Linear is for [N, C, L], Bilinear and Bicubic are for [N, C, H, W].
  InterpolateMode mode = InterpolateMode::Nearest;
  bool align_corners = false;  // for all modes except Nearest
};

// Throws ValueError unless exactly one of size and scale_factor is given with a number for each dimension, and for
// factors that are not positive; ShapeError when the input or the result is empty, or when the mode does not take the
// input's number of dimensions.
Tensor interpolate(const Tensor& x, const InterpolateOptions& options,
                   SourceLocation where = SourceLocation::current());

}  // namespace brigade
