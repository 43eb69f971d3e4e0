// Sliding windows as columns, and rearrangements of channels and pixels, as layers.
#pragma once

#include <brigade/autograd/ops/fold.h>
#include <brigade/nn/module.h>
#include <brigade/nn/size2.h>

namespace brigade::nn {

struct FoldOptions {
  Size2 dilation = 1;
  Size2 padding = 0;
  Size2 stride = 1;
};

// [N, C, H, W] -> [N, C * kh * kw, windows] (or without N). Throw ValueError for a size below 1 and a negative padding;
// forward throws as the functions do.
struct UnfoldImpl : Module {
  explicit UnfoldImpl(Size2 kernel_size, const FoldOptions& options = {});
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
  FoldParams params;

 protected:
  std::string extra() const override;
};
// [N, C * kh * kw, windows] -> [N, C, output_size] (or without N).
struct FoldImpl : Module {
  FoldImpl(Size2 output_size, Size2 kernel_size, const FoldOptions& options = {});
  Tensor forward(const Tensor& columns, SourceLocation where = SourceLocation::current());
  Size2 output_size;
  FoldParams params;

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

class Unfold : public ModuleHolder<UnfoldImpl> {
 public:
  BRIGADE_HANDLE(Unfold, UnfoldImpl)
  explicit Unfold(Size2 kernel_size, const FoldOptions& options = {}, SourceLocation where = SourceLocation::current())
      : ModuleHolder(std::make_shared<UnfoldImpl>(kernel_size, options), where) {}
};
class Fold : public ModuleHolder<FoldImpl> {
 public:
  BRIGADE_HANDLE(Fold, FoldImpl)
  Fold(Size2 output_size, Size2 kernel_size, const FoldOptions& options = {},
       SourceLocation where = SourceLocation::current())
      : ModuleHolder(std::make_shared<FoldImpl>(output_size, kernel_size, options), where) {}
};
BRIGADE_MODULE(PixelShuffle);
BRIGADE_MODULE(PixelUnshuffle);

}  // namespace brigade::nn
