#include <brigade/nn/conv.h>

#include <brigade/core/factory.h>
#include <brigade/nn/detail/text.h>
#include <brigade/nn/init.h>

namespace brigade::nn {

Conv2dImpl::Conv2dImpl(int64_t in, int64_t out, Size2 kernel, const Conv2dOptions& o)
    : Conv2dImpl(in, out, kernel, Conv2dParams{o.stride, o.padding, o.dilation, o.groups}, o.bias, o.dtype) {}

Conv2dImpl::Conv2dImpl(int64_t in, int64_t out, Size2 kernel, const Conv2dParams& p, bool with_bias, DType dtype)
    : in_channels(in), out_channels(out), kernel_size(kernel), params(p) {
  if (in < 1 || out < 1 || p.groups < 1 || in % p.groups != 0 || out % p.groups != 0) {
    throw ValueError("Conv2d: in_channels and out_channels must be at least 1 and divisible by groups, got " +
                     std::to_string(in) + " and " + std::to_string(out) + " with groups=" + std::to_string(p.groups));
  }
  for (size_t d = 0; d < 2; ++d) {
    if (kernel[d] >= 1 && p.stride[d] >= 1 && p.dilation[d] >= 1 && p.padding[d] >= 0) continue;
    throw ValueError("Conv2d: kernel_size, stride and dilation must be at least 1 and padding at least 0, got " +
                     to_string(kernel) + ", " + to_string(Size2(p.stride)) + ", " + to_string(Size2(p.dilation)) +
                     " and " + to_string(Size2(p.padding)));
  }
  weight = register_parameter("weight", empty({out, in / p.groups, kernel[0], kernel[1]}, dtype));
  if (with_bias) bias = register_parameter("bias", empty({out}, dtype));
  init::reset_parameters(weight, bias);
}

Tensor Conv2dImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  return conv2d(x, weight, bias, params, where);
}

// What has its default value is left out, as in PyTorch.
std::string Conv2dImpl::extra() const {
  std::string text = std::to_string(in_channels) + ", " + std::to_string(out_channels) +
                     ", kernel_size=" + to_string(kernel_size) + ", stride=" + to_string(Size2(params.stride));
  if (Size2(params.padding) != Size2(0)) text += ", padding=" + to_string(Size2(params.padding));
  if (Size2(params.dilation) != Size2(1)) text += ", dilation=" + to_string(Size2(params.dilation));
  if (params.groups != 1) text += ", groups=" + std::to_string(params.groups);
  if (!bias.defined()) text += ", bias=false";
  return text;
}

}  // namespace brigade::nn
