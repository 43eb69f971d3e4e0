// Pooling and interpolation of images.
#pragma once

#include <brigade/kernels/kernel.h>

#include <array>
#include <optional>

namespace brigade {

// Nearest: the element at the output's position. Linear and Bilinear: a weighted mean of the two nearest elements in
// each dimension (one or two dimensions). Bicubic: of the four nearest in each dimension, with Keys' kernel with a =
// -0.75 (Keys, IEEE Transactions on Acoustics, Speech, and Signal Processing 29, 1981).
enum class InterpolateMode : uint8_t { Nearest, Linear, Bilinear, Bicubic };

namespace kernels {

// --- 2-d pooling over NCHW (or CHW) tensors: with sliding windows, or windows that divide the input into a given
// number of parts (adaptive). Floating dtypes.

struct Pool2dParams {
  std::array<int64_t, 2> kernel_size = {2, 2};
  std::array<int64_t, 2> stride = {0, 0};  // zeros: kernel_size
  std::array<int64_t, 2> padding = {0, 0};
  bool ceil_mode = false;
  // Average pooling only: whether the divisor counts padding, and a divisor that replaces the number of elements.
  bool count_include_pad = true;
  std::optional<int64_t> divisor_override = std::nullopt;
  // Max pooling only: steps between the elements of a window.
  std::array<int64_t, 2> dilation = {1, 1};
  // Unless zeros, sizes of the result of adaptive pooling: window o is [floor(o * in / out), ceil((o + 1) * in / out)),
  // and the members above are ignored.
  std::array<int64_t, 2> output_size = {0, 0};
  // The first spatial dimension was added for 1-d pooling; error messages then describe one dimension.
  bool is_1d = false;
};

struct MaxPool {
  Tensor values;
  Tensor indices;  // int64, position h * W + w in the input plane, as in PyTorch
};
// The first largest element of each window, or its last NaN. Throw ShapeError when no window fits,
// ValueError.
extern Kernel<MaxPool(const Tensor& x, const Pool2dParams& params)> max_pool2d;
// Takes the `indices` and `params` of the forward. Half types are summed in float32 and rounded once, here and below.
extern Kernel<Tensor(const Tensor& grad, const Tensor& indices, const Shape& x_sizes, const Pool2dParams& params)>
    max_pool2d_backward;
// The elements of x [..., H, W] at the `indices` [..., H', W'] of its planes: the derivative of
// max_pool2d_backward.
extern Kernel<Tensor(const Tensor& x, const Tensor& indices)> max_pool2d_gather;
extern Kernel<Tensor(const Tensor& x, const Pool2dParams& params)> avg_pool2d;
extern Kernel<Tensor(const Tensor& grad, const Shape& x_sizes, const Pool2dParams& params)> avg_pool2d_backward;

// --- Resizing images: [N, C, H, W] -> [N, C, H', W'], floating dtypes. Same values as PyTorch's interpolate.

struct Interpolate2dParams {
  std::array<int64_t, 2> size = {0, 0};         // of the result
  std::array<double, 2> scale_factor = {0, 0};  // sets the positions, when `size` was computed from it; 0: none
  InterpolateMode mode = InterpolateMode::Nearest;
  // For all modes except Nearest: aligns the centers of the corner pixels instead of the corners of the images.
  bool align_corners = false;
  // The images are sequences (height 1). Nearest then always uses the scale factor; for images it does so only where
  // the size is neither kept nor doubled, as in PyTorch.
  bool is_1d = false;
};
// Throw ShapeError, ValueError, DTypeError. Half types are computed in float32 and rounded once.
extern Kernel<Tensor(const Tensor& x, const Interpolate2dParams& params)> interpolate2d;
extern Kernel<Tensor(const Tensor& grad, const Shape& x_sizes, const Interpolate2dParams& params)>
    interpolate2d_backward;

}  // namespace kernels
}  // namespace brigade
