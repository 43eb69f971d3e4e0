// Pooling layers.
#pragma once

#include <brigade/autograd/ops/pool.h>
#include <brigade/nn/module.h>

namespace brigade::nn {

struct MaxPool2dImpl : Module {
  // Windows of kernel_size x kernel_size that do not overlap.
  explicit MaxPool2dImpl(int64_t kernel_size) : params{{kernel_size, kernel_size}, {kernel_size, kernel_size}} {}
  explicit MaxPool2dImpl(const Pool2dParams& params_) : params(params_) {}
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current()) {
    return max_pool2d(x, params, where);
  }
  Pool2dParams params;
};
BRIGADE_MODULE(MaxPool2d);

struct AvgPool2dImpl : Module {
  explicit AvgPool2dImpl(int64_t kernel_size) : params{{kernel_size, kernel_size}, {kernel_size, kernel_size}} {}
  explicit AvgPool2dImpl(const Pool2dParams& params_) : params(params_) {}
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current()) {
    return avg_pool2d(x, params, where);
  }
  Pool2dParams params;
};
BRIGADE_MODULE(AvgPool2d);

}  // namespace brigade::nn
