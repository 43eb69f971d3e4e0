#include <brigade/nn/linear.h>

#include <brigade/autograd/ops/matmul.h>
#include <brigade/core/factory.h>
#include <brigade/nn/init.h>

#include <cmath>

namespace brigade::nn {

LinearImpl::LinearImpl(const LinearOptions& o) : options(o) {
  if (o.in_features < 1 || o.out_features < 1) {
    throw ValueError("Linear: in_features and out_features must be at least 1, got " + std::to_string(o.in_features) +
                     " and " + std::to_string(o.out_features));
  }
  weight = register_parameter("weight", empty({o.out_features, o.in_features}, o.dtype));
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  if (o.bias) {
    bias = register_parameter("bias", empty({o.out_features}, o.dtype));
    const double bound = 1 / std::sqrt(static_cast<double>(o.in_features));
    init::uniform_(bias, -bound, bound);
  }
}

Tensor LinearImpl::forward(const Tensor& x, SourceLocation where) { return brigade::linear(x, weight, bias, where); }

std::string LinearImpl::extra() const {
  return "in_features=" + std::to_string(options.in_features) +
         ", out_features=" + std::to_string(options.out_features) + ", bias=" + (options.bias ? "true" : "false");
}

}  // namespace brigade::nn
