// Resizing images: [N, C, H, W] -> [N, C, H', W'], floating dtypes. Same values as PyTorch's interpolate.
#pragma once

#include <brigade/kernels/kernel.h>

#include <array>

namespace brigade {

// Nearest: the element at the output's position. Linear and Bilinear: a weighted mean of the two nearest elements in
// each dimension (one or two dimensions). Bicubic: of the four nearest in each dimension, with Keys' kernel with a =
// -0.75 (Keys, IEEE Transactions on Acoustics, Speech, and Signal Processing 29, 1981).
enum class InterpolateMode : uint8_t { Nearest, Linear, Bilinear, Bicubic };

namespace kernels {

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
