// Parameters, forward and printed options of Linear.
#include <brigade/nn/linear.h>

#include <brigade/autograd/ops/matmul.h>
#include <brigade/core/factory.h>
#include <brigade/nn/detail/text.h>
#include <brigade/nn/detail/with_sizes.h>
#include <brigade/nn/init.h>

namespace brigade::nn {

LinearImpl::LinearImpl(const LinearOptions& o) : options(o) {
  if (o.in_features < 0 || o.out_features < 0) {
    throw ValueError("Linear: in_features and out_features must be at least 0, got " + std::to_string(o.in_features) +
                     " and " + std::to_string(o.out_features));
  }
  weight = register_parameter("weight", empty({o.out_features, o.in_features}, o.dtype));
  if (o.bias) bias = register_parameter("bias", empty({o.out_features}, o.dtype));
  init::reset_parameters(weight, bias);
}

LinearImpl::LinearImpl(int64_t in_features, int64_t out_features, const LinearOptions& o)
    : LinearImpl(detail::with_sizes<LinearOptions>(o, "Linear",
                                                   {{"in_features", &LinearOptions::in_features, in_features},
                                                    {"out_features", &LinearOptions::out_features, out_features}})) {}

Tensor LinearImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  return brigade::linear(x, weight, bias, where);
}

std::string LinearImpl::extra() const {
  return "in_features=" + std::to_string(options.in_features) +
         ", out_features=" + std::to_string(options.out_features) + ", bias=" + detail::text_of(options.bias);
}

}  // namespace brigade::nn
