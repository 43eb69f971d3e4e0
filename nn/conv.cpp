#include <brigade/nn/conv.h>

#include <brigade/core/factory.h>
#include <brigade/nn/init.h>

#include <cmath>

namespace brigade::nn {

Conv2dImpl::Conv2dImpl(int64_t in_channels, int64_t out_channels, int64_t kernel_size, const Conv2dParams& p,
                       bool with_bias, DType dtype)
    : params(p) {
  if (in_channels < 1 || out_channels < 1 || kernel_size < 1 || p.groups < 1 || in_channels % p.groups != 0 ||
      out_channels % p.groups != 0) {
    throw ValueError(
        "Conv2d: channels and kernel_size must be at least 1 and channels divisible by groups, got in_channels=" +
        std::to_string(in_channels) + ", out_channels=" + std::to_string(out_channels) +
        ", kernel_size=" + std::to_string(kernel_size) + ", groups=" + std::to_string(p.groups));
  }
  weight = register_parameter("weight", empty({out_channels, in_channels / p.groups, kernel_size, kernel_size}, dtype));
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  if (with_bias) {
    bias = register_parameter("bias", empty({out_channels}, dtype));
    const double bound = 1 / std::sqrt(static_cast<double>(init::fans_of(weight).in));
    init::uniform_(bias, -bound, bound);
  }
}

Tensor Conv2dImpl::forward(const Tensor& x, SourceLocation where) { return conv2d(x, weight, bias, params, where); }

std::string Conv2dImpl::extra() const {
  return std::to_string(weight.size(1) * params.groups) + ", " + std::to_string(weight.size(0)) +
         ", kernel_size=" + std::to_string(weight.size(2)) + ", stride=" + std::to_string(params.stride[0]) +
         ", padding=" + std::to_string(params.padding[0]);
}

}  // namespace brigade::nn
