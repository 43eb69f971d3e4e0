// Pooling over one or two dimensions; floating dtypes. Windows slide ([N, C, L] or [C, L], [N, C, H, W] or [C, H, W]),
// or divide the input into as many parts as the result has elements (adaptive). Throw ShapeError when a window does not
// fit, ValueError for parameters that make no sense.
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/kernels/pool.h>

#include <array>
#include <optional>

namespace brigade {

// H' = (H + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1, rounded up with ceil_mode (but no window
// starts behind the input). Stride 0 stands for kernel_size; padding is at most half of it.
using Pool2dParams = kernels::Pool2dParams;
struct Pool1dParams {
  int64_t kernel_size = 2;
  int64_t stride = 0;
  int64_t padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;  // average pooling only: padding counts as zeros
  int64_t dilation = 1;           // max pooling only
};

// The largest of each window, and int64 indices: its place in the plane, h * W + w (or in the line).
using MaxPoolResult = kernels::MaxPool;

// The gradient goes to the first largest element of each window, or to its last NaN.
Tensor max_pool2d(const Tensor& x, const Pool2dParams& params = {}, SourceLocation where = SourceLocation::current());
MaxPoolResult max_pool2d_with_indices(const Tensor& x, const Pool2dParams& params = {},
                                      SourceLocation where = SourceLocation::current());
Tensor max_pool1d(const Tensor& x, const Pool1dParams& params = {}, SourceLocation where = SourceLocation::current());
MaxPoolResult max_pool1d_with_indices(const Tensor& x, const Pool1dParams& params = {},
                                      SourceLocation where = SourceLocation::current());
Tensor avg_pool2d(const Tensor& x, const Pool2dParams& params = {}, SourceLocation where = SourceLocation::current());
Tensor avg_pool1d(const Tensor& x, const Pool1dParams& params = {}, SourceLocation where = SourceLocation::current());

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

}  // namespace brigade
