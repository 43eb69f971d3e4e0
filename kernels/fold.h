// Sliding windows of images as matrix columns (im2col), and the reverse (col2im): each is the transpose of the other.
// Floating dtypes; half types are added up in float32 and rounded once.
#pragma once

#include <brigade/kernels/kernel.h>

#include <array>

namespace brigade::kernels {

struct FoldParams {
  std::array<int64_t, 2> kernel_size = {1, 1};
  std::array<int64_t, 2> dilation = {1, 1};
  std::array<int64_t, 2> padding = {0, 0};
  std::array<int64_t, 2> stride = {1, 1};
};

// x [N, C, H, W] -> [N, C * kh * kw, windows]; zeros outside. Throw ShapeError, ValueError,
// DTypeError.
extern Kernel<Tensor(const Tensor& x, const FoldParams& params)> unfold2d;
// columns [N, C * kh * kw, windows] -> [N, C, H, W] with the elements of all windows added up.
extern Kernel<Tensor(const Tensor& columns, const std::array<int64_t, 2>& output_size, const FoldParams& params)>
    fold2d;

}  // namespace brigade::kernels
