// 2-d convolution, and its sliding windows as matrix columns.
#pragma once

#include <brigade/kernels/kernel.h>

#include <array>
#include <compare>

namespace brigade::kernels {

// --- 2-d convolution (cross-correlation), NCHW tensors, weight [out, in / groups, kh, kw]. On the CPU, float32 uses
// oneDNN's convolution where present (in its own layouts, with primitives cached by shape), otherwise im2col and matrix
// products, as float64 does. bfloat16 uses oneDNN's where the processor has instructions for it; float16, and bfloat16
// otherwise, go through float32. Both accumulate in float and are rounded once, after the bias or the old value of
// `out` is added. CUDA devices use cuDNN, see core/cuda/device.h for TF32, workspace and determinism; half types
// accumulate in float, and are rounded once more where a bias is added.

struct Conv2dParams {
  std::array<int64_t, 2> stride = {1, 1};
  std::array<int64_t, 2> padding = {0, 0};
  std::array<int64_t, 2> dilation = {1, 1};
  int64_t groups = 1;

  auto operator<=>(const Conv2dParams&) const = default;
};

// bias [out] may be undefined. All throw ShapeError naming both shapes, DTypeError, DeviceError, ValueError.
extern Kernel<Tensor(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dParams& params)> conv2d;
// `bias` [in], which may be undefined, is added to the result: a transposed convolution.
extern Kernel<Tensor(const Tensor& grad, const Tensor& weight, const Tensor& bias, const Shape& x_sizes,
                     const Conv2dParams& params)>
    conv2d_backward_input;
// `out`, `accumulate` as in MatmulOptions.
extern Kernel<Tensor(const Tensor& grad, const Tensor& x, const Shape& weight_sizes, const Conv2dParams& params,
                     const Tensor& out, bool accumulate)>
    conv2d_backward_weight;

// --- Sliding windows of images as matrix columns (im2col), and the reverse (col2im): each is the transpose of the
// other. Floating dtypes; half types are added up in float32 and rounded once.

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
