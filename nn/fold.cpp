// Checks, forward and printed options of Unfold, Fold, PixelShuffle and PixelUnshuffle.
#include <brigade/nn/fold.h>

namespace brigade::nn {
namespace {

void check_unfold(const char* layer, Size2 kernel_size, const FoldOptions& o) {
  for (size_t d = 0; d < 2; ++d) {
    if (kernel_size[d] >= 1 && o.dilation[d] >= 1 && o.stride[d] >= 1 && o.padding[d] >= 0) continue;
    throw ValueError(
        "{}: kernel_size, dilation and stride must be at least 1 and padding at least 0, got {}, {}, {} and {}", layer,
        kernel_size, o.dilation, o.stride, o.padding);
  }
}

int64_t checked(const char* layer, const char* name, int64_t factor) {
  if (factor >= 1) return factor;
  throw ValueError("{}: {} must be at least 1, got {}", layer, name, factor);
}

std::string unfold_in_words(Size2 kernel_size, const FoldOptions& o) {
  return "kernel_size=" + to_string(kernel_size) + ", dilation=" + to_string(o.dilation) +
         ", padding=" + to_string(o.padding) + ", stride=" + to_string(o.stride);
}

}  // namespace

UnfoldImpl::UnfoldImpl(Size2 kernel, const FoldOptions& o) : kernel_size(kernel), options(o) {
  check_unfold("Unfold", kernel, o);
}
Tensor UnfoldImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  return unfold(x, kernel_size, options, where);
}
std::string UnfoldImpl::extra() const { return unfold_in_words(kernel_size, options); }

FoldImpl::FoldImpl(Size2 size, Size2 kernel, const FoldOptions& o)
    : output_size(size), kernel_size(kernel), options(o) {
  check_unfold("Fold", kernel, o);
  checked("Fold", "output_size", std::min(size[0], size[1]));
}
Tensor FoldImpl::forward(const Tensor& columns, SourceLocation where) {
  const CallScope scope(*this, where);
  return fold(columns, output_size, kernel_size, options, where);
}
std::string FoldImpl::extra() const {
  return "output_size=" + to_string(output_size) + ", " + unfold_in_words(kernel_size, options);
}

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
