// Convolution, and its sliding windows as matrices.
#pragma once

#include <brigade/core/options.h>
#include <brigade/core/tensor.h>

#include <array>
#include <string_view>

namespace brigade {

// --- Convolution (cross-correlation) over one or two spatial dimensions, and its transpose.

// Zero padding of an image: a number for each spatial dimension (or one for all), or PyTorch's "valid" (none) or "same"
// (keeps the size: (kernel - 1) * dilation in total, the odd one at the end).
template <size_t spatial>
class ConvPadding {
 public:
  constexpr ConvPadding(int64_t all) noexcept { values_.fill(all); }                               // NOLINT
  constexpr ConvPadding(const std::array<int64_t, spatial>& values) noexcept : values_(values) {}  // NOLINT
  template <class... More>
  requires(spatial > 1 && sizeof...(More) == spatial - 1)  // NOLINT(*explicit*): written as {1, 2}
      constexpr ConvPadding(int64_t first, More... more) noexcept
      : values_{first, static_cast<int64_t>(more)...} {}
  // Throws ValueError for another word.
  template <size_t length>
  constexpr ConvPadding(const char (&word)[length]) : word_(checked(word)) {}  // NOLINT

  bool same() const noexcept { return word_ == "same"; }
  // "same", "valid", or nothing for numbers.
  constexpr std::string_view word() const noexcept { return word_; }
  // All 0 if there is a word.
  constexpr const std::array<int64_t, spatial>& values() const noexcept { return values_; }

 private:
  static constexpr std::string_view checked(std::string_view word) {
    if (word == "same") return "same";
    if (word == "valid") return "valid";
    throw ValueError("padding: expected numbers, \"same\" or \"valid\", got \"{}\"", word);
  }
  std::array<int64_t, spatial> values_ = {};
  std::string_view word_;
};

struct Conv1dFuncOptions {
  [[no_unique_address]] NamedOnly named = NamedOnly();
  int64_t stride = 1;
  ConvPadding<1> padding = 0;
  int64_t dilation = 1;
  int64_t groups = 1;  // divides both channel counts
};
struct Conv2dFuncOptions {
  [[no_unique_address]] NamedOnly named = NamedOnly();
  Size2 stride = 1;
  ConvPadding<2> padding = 0;
  Size2 dilation = 1;
  int64_t groups = 1;  // divides both channel counts
};

// x [N, C, H, W] or [C, H, W], weight [out, C / groups, kh, kw], bias [out] (may be undefined): [N,
// out, H', W'] (or without N) with H' = (H + 2 * padding - dilation * (kh - 1) - 1) / stride + 1.
// One floating dtype. Throws ShapeError, ValueError (also for padding "same" with a stride above
// 1), DTypeError.
//   conv2d(x, weight, bias, {.stride = 2, .padding = {1, 2}})
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Conv2dFuncOptions& options = {},
              SourceLocation where = SourceLocation::current());
// The same with LibTorch's arguments: conv2d(x, weight, {}, {2, 2}) has a stride of 2.
inline Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, Size2 stride,
                     const ConvPadding<2>& padding = 0, Size2 dilation = 1, int64_t groups = 1,
                     SourceLocation where = SourceLocation::current()) {
  return conv2d(x, weight, bias, {.stride = stride, .padding = padding, .dilation = dilation, .groups = groups}, where);
}
// The same over [N, C, L] or [C, L] with weight [out, C / groups, k].
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Conv1dFuncOptions& options = {},
              SourceLocation where = SourceLocation::current());

// The options are those of the convolution that this one transposes.
struct ConvTranspose1dFuncOptions {
  [[no_unique_address]] NamedOnly named = NamedOnly();
  int64_t stride = 1;
  int64_t padding = 0;         // rows removed from the result at either end
  int64_t output_padding = 0;  // rows added at the end; below the larger of stride and dilation
  int64_t groups = 1;
  int64_t dilation = 1;
};
struct ConvTranspose2dFuncOptions {
  [[no_unique_address]] NamedOnly named = NamedOnly();
  Size2 stride = 1;
  Size2 padding = 0;
  Size2 output_padding = 0;
  int64_t groups = 1;
  Size2 dilation = 1;
};

// The gradient of a convolution with respect to its input, used as an upsampling layer: x [N, C, H, W] or [C, H, W],
// weight [C, out / groups, kh, kw], bias [out] (may be undefined): [N, out, H', W'] (or without N) with
// H' = (H - 1) * stride - 2 * padding + dilation * (kh - 1) + output_padding + 1.
// Throws ShapeError, ValueError, DTypeError.
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        const ConvTranspose2dFuncOptions& options = {},
                        SourceLocation where = SourceLocation::current());
// The same with LibTorch's arguments, dilation last.
inline Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias, Size2 stride,
                               Size2 padding = 0, Size2 output_padding = 0, int64_t groups = 1, Size2 dilation = 1,
                               SourceLocation where = SourceLocation::current()) {
  return conv_transpose2d(
      x, weight, bias,
      {.stride = stride, .padding = padding, .output_padding = output_padding, .groups = groups, .dilation = dilation},
      where);
}
// The same over [N, C, L] or [C, L] with weight [C, out / groups, k].
Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        const ConvTranspose1dFuncOptions& options = {},
                        SourceLocation where = SourceLocation::current());

// --- Sliding windows as matrices, and rearrangements of channels and space.

// Options of the functions and of the layers.
struct FoldOptions {
  [[no_unique_address]] NamedOnly named = NamedOnly();
  Size2 dilation = 1;
  Size2 padding = 0;
  Size2 stride = 1;
};

// x [N, C, H, W] or [C, H, W] -> [N, C * kh * kw, windows] (or without N): column l holds window l,
// padding as zeros (im2col). Floating dtypes. unfold and fold throw ShapeError, ValueError, DTypeError.
Tensor unfold(const Tensor& x, Size2 kernel_size, const FoldOptions& options = {},
              SourceLocation where = SourceLocation::current());
// columns [N, C * kh * kw, windows] (or without N) -> [N, C, H, W]: each pixel is the sum of what
// the windows over it hold (col2im), so that fold(unfold(x)) is x times the number of windows over
// each pixel.
Tensor fold(const Tensor& columns, Size2 output_size, Size2 kernel_size, const FoldOptions& options = {},
            SourceLocation where = SourceLocation::current());

// [..., C * r * r, H, W] -> [..., C, H * r, W * r] (Shi et al., arXiv 1609.05158): r * r channels become the pixels of
// one. Any dtype. Throws ShapeError, ValueError.
Tensor pixel_shuffle(const Tensor& x, int64_t upscale_factor, SourceLocation where = SourceLocation::current());
// The inverse: [..., C, H * r, W * r] -> [..., C * r * r, H, W].
Tensor pixel_unshuffle(const Tensor& x, int64_t downscale_factor, SourceLocation where = SourceLocation::current());

}  // namespace brigade
