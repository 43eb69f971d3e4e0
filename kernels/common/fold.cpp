// Counts the sliding windows of an image, and checks the sizes.
#include <brigade/kernels/fold.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/common/fold.h>

#include <string>

namespace brigade::kernels {

namespace {

std::string pair(const std::array<int64_t, 2>& values) {
  return "[" + std::to_string(values[0]) + ", " + std::to_string(values[1]) + "]";
}

// The number of windows along each dimension.
std::array<int64_t, 2> windows(const char* what, const std::array<int64_t, 2>& size, const FoldParams& p) {
  std::array<int64_t, 2> out{};
  for (size_t d = 0; d < 2; ++d) {
    if (p.kernel_size[d] < 1 || p.dilation[d] < 1 || p.padding[d] < 0 || p.stride[d] < 1) {
      throw ValueError(
          "{}: kernel_size, dilation and stride must be at least 1 and padding at least 0, got {}, {}, {} and {}", what,
          pair(p.kernel_size), pair(p.dilation), pair(p.stride), pair(p.padding));
    }
    const int64_t span =
        (Size(size[d]) + p.padding[d] + p.padding[d] - Size(p.dilation[d]) * (p.kernel_size[d] - 1) - 1).value();
    if (size[d] < 1 || span < 0) {
      throw ShapeError("{}: no window of kernel_size {} and dilation {} fits into an image {} with padding {}", what,
                       pair(p.kernel_size), pair(p.dilation), pair(size), pair(p.padding));
    }
    out[d] = span / p.stride[d] + 1;
  }
  return out;
}

}  // namespace

FoldPlan prepare_unfold(const Tensor& x, const FoldParams& p) {
  if (x.dim() != 4) throw ShapeError("unfold: expected [N, C, H, W], got {}", x.sizes());
  const Shape& sizes = x.sizes();
  const auto out = windows("unfold", {sizes[2], sizes[3]}, p);
  return {
      sizes[0] * sizes[1],
      sizes[2],
      sizes[3],
      out[0],
      out[1],
      p,
      empty({sizes[0], (Size(sizes[1]) * p.kernel_size[0] * p.kernel_size[1]).value(), (Size(out[0]) * out[1]).value()},
            x.options())};
}

FoldPlan prepare_fold(const Tensor& columns, const std::array<int64_t, 2>& output_size, const FoldParams& p) {
  if (columns.dim() != 3) {
    throw ShapeError("fold: expected columns [N, C * kernel height * kernel width, windows], got {}", columns.sizes());
  }
  const auto out = windows("fold", output_size, p);
  const Shape& sizes = columns.sizes();
  const int64_t window = (Size(p.kernel_size[0]) * p.kernel_size[1]).value();
  if (sizes[1] % window != 0 || sizes[2] != (Size(out[0]) * out[1]).value()) {
    throw ShapeError(
        "fold: expected columns [N, a multiple of {}, {} * {}] for an output {} and kernel_size {}, got {}", window,
        out[0], out[1], pair(output_size), pair(p.kernel_size), sizes);
  }
  const int64_t channels = sizes[1] / window;
  return {sizes[0] * channels,
          output_size[0],
          output_size[1],
          out[0],
          out[1],
          p,
          empty({sizes[0], channels, output_size[0], output_size[1]}, columns.options())};
}

}  // namespace brigade::kernels
