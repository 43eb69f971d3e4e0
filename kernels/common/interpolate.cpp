// Checks the sizes, modes and gradients of interpolation.
#include <brigade/kernels/interpolate.h>

#include <brigade/kernels/common/interpolate.h>

#include <string>

namespace brigade::kernels {

Shape check_interpolate(const Shape& x_sizes, const Interpolate2dParams& p) {
  constexpr int64_t kMost = int64_t{1} << 30;
  if (x_sizes.size() != 4) throw ShapeError("interpolate: expected [N, C, H, W], got {}", x_sizes);
  for (size_t d = 0; d < 2; ++d) {
    const int64_t in = x_sizes[static_cast<int>(d) + 2];
    if (in < 1 || p.size[d] < 1 || in > kMost || p.size[d] > kMost) {
      throw ShapeError("interpolate: height and width must be 1 to 2^30, got an input {} and a size [{}, {}]", x_sizes,
                       p.size[0], p.size[1]);
    }
    if (!(p.scale_factor[d] >= 0))
      throw ValueError("interpolate: a scale_factor must be above 0, got {}", p.scale_factor[d]);
  }
  if (p.align_corners && p.mode == InterpolateMode::Nearest)
    throw ValueError("interpolate: align_corners is for the modes that weigh elements; leave it out for Nearest");
  return {x_sizes[0], x_sizes[1], p.size[0], p.size[1]};
}

void check_interpolate_backward(const Tensor& grad, const Shape& x_sizes, const Interpolate2dParams& params) {
  const Shape expected = check_interpolate(x_sizes, params);
  if (grad.sizes() == expected) return;
  throw ShapeError("interpolate backward: expected a gradient {}, got {}", expected, describe(grad));
}

}  // namespace brigade::kernels
