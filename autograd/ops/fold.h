// Sliding windows as matrices, and rearrangements of channels and space.
#pragma once

#include <brigade/core/named_only.h>
#include <brigade/core/size2.h>
#include <brigade/core/tensor.h>

namespace brigade {

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
