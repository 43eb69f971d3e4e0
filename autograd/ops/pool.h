// Pooling, and resizing of images and sequences.
#pragma once

#include <brigade/core/options.h>
#include <brigade/core/tensor.h>
#include <brigade/kernels/pool.h>

#include <array>
#include <optional>
#include <vector>

namespace brigade {

// --- Pooling over one or two dimensions; floating dtypes. Windows slide ([N, C, L] or [C, L], [N, C, H, W] or [C, H,
// W]), or divide the input into as many parts as the result has elements (adaptive). They throw ShapeError when a
// window does not fit and ValueError for invalid parameters.

// Options of the functions and of the layers: H' = (H + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1,
// rounded up with ceil_mode (but no window starts past the input).
struct MaxPool1dOptions {
  [[no_unique_address]] NamedOnly named = NamedOnly();
  std::optional<int64_t> stride;  // kernel_size unless given: windows that do not overlap
  int64_t padding = 0;            // at most half of kernel_size
  int64_t dilation = 1;
  bool ceil_mode = false;
};
struct MaxPool2dOptions {
  [[no_unique_address]] NamedOnly named = NamedOnly();
  OptionalSize2 stride;
  Size2 padding = 0;
  Size2 dilation = 1;
  bool ceil_mode = false;
};
struct AvgPool1dOptions {
  [[no_unique_address]] NamedOnly named = NamedOnly();
  std::optional<int64_t> stride;
  int64_t padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;  // padding counts as zeros in the average
};
struct AvgPool2dOptions {
  [[no_unique_address]] NamedOnly named = NamedOnly();
  OptionalSize2 stride;
  Size2 padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
  std::optional<int64_t> divisor_override = std::nullopt;  // replaces the divisor of the sums
};

// The maximum of each window and its int64 index in the plane, h * W + w (or in the sequence).
using MaxPoolResult = kernels::MaxPool;

// The gradient goes to the first largest element of each window, or to its last NaN.
//   max_pool2d(x, 2);  max_pool2d(x, {3, 5}, {.stride = 2, .padding = {1, 2}});
Tensor max_pool2d(const Tensor& x, Size2 kernel_size, const MaxPool2dOptions& options = {},
                  SourceLocation where = SourceLocation::current());
MaxPoolResult max_pool2d_with_indices(const Tensor& x, Size2 kernel_size, const MaxPool2dOptions& options = {},
                                      SourceLocation where = SourceLocation::current());
// The same with LibTorch's arguments: max_pool2d(x, {3, 5}, {2, 2}, {1, 2}).
inline Tensor max_pool2d(const Tensor& x, Size2 kernel_size, Size2 stride, Size2 padding = 0, Size2 dilation = 1,
                         bool ceil_mode = false, SourceLocation where = SourceLocation::current()) {
  return max_pool2d(x, kernel_size,
                    {.stride = stride, .padding = padding, .dilation = dilation, .ceil_mode = ceil_mode}, where);
}
inline MaxPoolResult max_pool2d_with_indices(const Tensor& x, Size2 kernel_size, Size2 stride, Size2 padding = 0,
                                             Size2 dilation = 1, bool ceil_mode = false,
                                             SourceLocation where = SourceLocation::current()) {
  return max_pool2d_with_indices(
      x, kernel_size, {.stride = stride, .padding = padding, .dilation = dilation, .ceil_mode = ceil_mode}, where);
}
Tensor max_pool1d(const Tensor& x, int64_t kernel_size, const MaxPool1dOptions& options = {},
                  SourceLocation where = SourceLocation::current());
MaxPoolResult max_pool1d_with_indices(const Tensor& x, int64_t kernel_size, const MaxPool1dOptions& options = {},
                                      SourceLocation where = SourceLocation::current());
Tensor avg_pool2d(const Tensor& x, Size2 kernel_size, const AvgPool2dOptions& options = {},
                  SourceLocation where = SourceLocation::current());
// The same with LibTorch's arguments: avg_pool2d(x, {3, 3}, {1, 1}).
inline Tensor avg_pool2d(const Tensor& x, Size2 kernel_size, Size2 stride, Size2 padding = 0, bool ceil_mode = false,
                         bool count_include_pad = true, std::optional<int64_t> divisor_override = std::nullopt,
                         SourceLocation where = SourceLocation::current()) {
  return avg_pool2d(x, kernel_size,
                    {.stride = stride,
                     .padding = padding,
                     .ceil_mode = ceil_mode,
                     .count_include_pad = count_include_pad,
                     .divisor_override = divisor_override},
                    where);
}
Tensor avg_pool1d(const Tensor& x, int64_t kernel_size, const AvgPool1dOptions& options = {},
                  SourceLocation where = SourceLocation::current());

// Sizes of a result of adaptive pooling: {5, 7}, 5 for {5, 5}, nullopt for the input's.
struct PoolOutputSize {
  std::array<std::optional<int64_t>, 2> values;

  constexpr PoolOutputSize(int64_t both) noexcept : values{both, both} {}  // NOLINT: written as a number
  constexpr PoolOutputSize(std::optional<int64_t> height, std::optional<int64_t> width) noexcept
      : values{height, width} {}
};
// Window o of a dimension is [floor(o * in / out), ceil((o + 1) * in / out)).
Tensor adaptive_avg_pool2d(const Tensor& x, const PoolOutputSize& output_size,
                           SourceLocation where = SourceLocation::current());
Tensor adaptive_avg_pool1d(const Tensor& x, int64_t output_size, SourceLocation where = SourceLocation::current());
Tensor adaptive_max_pool2d(const Tensor& x, const PoolOutputSize& output_size,
                           SourceLocation where = SourceLocation::current());
MaxPoolResult adaptive_max_pool2d_with_indices(const Tensor& x, const PoolOutputSize& output_size,
                                               SourceLocation where = SourceLocation::current());
Tensor adaptive_max_pool1d(const Tensor& x, int64_t output_size, SourceLocation where = SourceLocation::current());
MaxPoolResult adaptive_max_pool1d_with_indices(const Tensor& x, int64_t output_size,
                                               SourceLocation where = SourceLocation::current());

// --- Resizing images [N, C, H, W] and sequences [N, C, L]; floating dtypes. Results match PyTorch's interpolate.

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
