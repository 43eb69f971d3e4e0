// 2-d pooling over NCHW (or CHW) tensors. Floating dtypes.
#pragma once

#include <brigade/kernels/kernel.h>

#include <array>

namespace brigade::kernels {

struct Pool2dParams {
  std::array<int64_t, 2> kernel_size = {2, 2};
  std::array<int64_t, 2> stride = {2, 2};
  std::array<int64_t, 2> padding = {0, 0};
  bool ceil_mode = false;
  bool count_include_pad = true;  // average pooling only
};

struct MaxPool {
  Tensor values;
  Tensor indices;  // int64, position in the input plane h * W + w, as PyTorch returns it
};
// The first largest element of each window, or its last NaN. Throw ShapeError when no window fits, ValueError.
extern Kernel<MaxPool(const Tensor& x, const Pool2dParams& params)> max_pool2d;
// With the `indices` and `params` of the forward. Half types are summed in float32 and rounded once, here and below.
extern Kernel<Tensor(const Tensor& grad, const Tensor& indices, const Shape& x_sizes, const Pool2dParams& params)>
    max_pool2d_backward;
extern Kernel<Tensor(const Tensor& x, const Pool2dParams& params)> avg_pool2d;
extern Kernel<Tensor(const Tensor& grad, const Shape& x_sizes, const Pool2dParams& params)> avg_pool2d_backward;

}  // namespace brigade::kernels
