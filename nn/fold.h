// Sliding windows as columns, and rearrangements of channels and pixels, as layers.
#pragma once

#include <brigade/autograd/ops/conv.h>
#include <brigade/nn/module.h>

namespace brigade::nn {

using brigade::FoldOptions;

// [N, C, H, W] -> [N, C * kh * kw, windows] (or without N). These layers throw ValueError for a size below 1 and a
// negative padding; forward throws like the functions.
struct UnfoldImpl : Module {
  using Size = Size2;
  using Options = FoldOptions;
  explicit UnfoldImpl(Size2 kernel_size, const FoldOptions& options = {});
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
  Size2 kernel_size;
  Options options;

 protected:
  std::string extra() const override;
};
// [N, C * kh * kw, windows] -> [N, C, output_size] (or without N).
struct FoldImpl : Module {
  using Size = Size2;
  using Options = FoldOptions;
  FoldImpl(Size2 output_size, Size2 kernel_size, const FoldOptions& options = {});
  Tensor forward(const Tensor& columns, SourceLocation where = SourceLocation::current());
  Size2 output_size, kernel_size;
  Options options;

 protected:
  std::string extra() const override;
};

// [N, C * r * r, H, W] -> [N, C, H * r, W * r], and back.
struct PixelShuffleImpl : Module {
  explicit PixelShuffleImpl(int64_t upscale_factor);
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
  int64_t upscale_factor;

 protected:
  std::string extra() const override;
};
struct PixelUnshuffleImpl : Module {
  explicit PixelUnshuffleImpl(int64_t downscale_factor);
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
  int64_t downscale_factor;

 protected:
  std::string extra() const override;
};

BRIGADE_MODULE(Unfold);
BRIGADE_MODULE(Fold);
BRIGADE_MODULE(PixelShuffle);
BRIGADE_MODULE(PixelUnshuffle);

}  // namespace brigade::nn
