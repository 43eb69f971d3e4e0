// Checks, forward and printed options of Unfold, Fold, PixelShuffle and PixelUnshuffle.
#include <brigade/nn/fold.h>

namespace brigade::nn {

namespace {

FoldParams checked(const char* layer, Size2 kernel_size, const FoldOptions& o) {
  for (size_t d = 0; d < 2; ++d) {
    if (kernel_size[d] >= 1 && o.dilation[d] >= 1 && o.stride[d] >= 1 && o.padding[d] >= 0) continue;
    throw ValueError(std::string(layer) +
                     ": kernel_size, dilation and stride must be at least 1 and padding at least 0, got " +
                     to_string(kernel_size) + ", " + to_string(o.dilation) + ", " + to_string(o.stride) + " and " +
                     to_string(o.padding));
  }
  return {.kernel_size = kernel_size, .dilation = o.dilation, .padding = o.padding, .stride = o.stride};
}

int64_t checked(const char* layer, const char* name, int64_t factor) {
  if (factor >= 1) return factor;
  throw ValueError(std::string(layer) + ": " + name + " must be at least 1, got " + std::to_string(factor));
}

std::string describe(const FoldParams& p) {
  return "kernel_size=" + to_string(Size2(p.kernel_size)) + ", dilation=" + to_string(Size2(p.dilation)) +
         ", padding=" + to_string(Size2(p.padding)) + ", stride=" + to_string(Size2(p.stride));
}

}  // namespace

UnfoldImpl::UnfoldImpl(Size2 kernel_size, const FoldOptions& o) : params(checked("Unfold", kernel_size, o)) {}
Tensor UnfoldImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  return unfold(x, params, where);
}
std::string UnfoldImpl::extra() const { return describe(params); }

FoldImpl::FoldImpl(Size2 size, Size2 kernel_size, const FoldOptions& o)
    : output_size(size), params(checked("Fold", kernel_size, o)) {
  checked("Fold", "output_size", std::min(size[0], size[1]));
}
Tensor FoldImpl::forward(const Tensor& columns, SourceLocation where) {
  const CallScope scope(*this, where);
  return fold(columns, output_size, params, where);
}
std::string FoldImpl::extra() const { return "output_size=" + to_string(output_size) + ", " + describe(params); }

PixelShuffleImpl::PixelShuffleImpl(int64_t factor)
    : upscale_factor(checked("PixelShuffle", "upscale_factor", factor)) {}
Tensor PixelShuffleImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  return pixel_shuffle(x, upscale_factor, where);
}
std::string PixelShuffleImpl::extra() const { return "upscale_factor=" + std::to_string(upscale_factor); }

PixelUnshuffleImpl::PixelUnshuffleImpl(int64_t factor)
    : downscale_factor(checked("PixelUnshuffle", "downscale_factor", factor)) {}
Tensor PixelUnshuffleImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  return pixel_unshuffle(x, downscale_factor, where);
}
std::string PixelUnshuffleImpl::extra() const { return "downscale_factor=" + std::to_string(downscale_factor); }

}  // namespace brigade::nn
