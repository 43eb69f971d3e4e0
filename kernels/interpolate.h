// Resizing images: [N, C, H, W] -> [N, C, H', W'], floating dtypes. Values as PyTorch's
// interpolate.
#pragma once

#include <brigade/kernels/kernel.h>

#include <array>

namespace brigade {

// Nearest: the element that the output's position falls on. Linear and Bilinear: a weighted mean of
// the two around it in each dimension (of one, or of two). Bicubic: of the four around it, by Keys'
// kernel with a = -0.75 (Keys, IEEE Transactions on Acoustics, Speech, and Signal Processing 29,
// 1981).
enum class InterpolateMode : uint8_t { Nearest, Linear, Bilinear, Bicubic };

namespace kernels {

struct Interpolate2dParams {
  std::array<int64_t, 2> size = {0, 0};         // of the result
  std::array<double, 2> scale_factor = {0, 0};  // that the size was made from, if positions are to follow it; 0: none
  InterpolateMode mode = InterpolateMode::Nearest;
  // All but Nearest: the centres of the corner pixels lie upon each other, not the corners of the
  // images.
  bool align_corners = false;
  // The images are sequences, of height 1: Nearest follows their factor always, that of an
  // image only where the size is not kept or doubled, as in PyTorch.
  bool is_1d = false;
};
// Throw ShapeError, ValueError, DTypeError. Half types are computed in float32 and rounded once.
extern Kernel<Tensor(const Tensor& x, const Interpolate2dParams& params)> interpolate2d;
extern Kernel<Tensor(const Tensor& grad, const Shape& x_sizes, const Interpolate2dParams& params)>
    interpolate2d_backward;

}  // namespace kernels
}  // namespace brigade
