// Parameters, forward and printed options of LayerNorm and RMSNorm.
#include <brigade/nn/layer_norm.h>

#include <brigade/autograd/ops/normalization.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/detail/options.h>

namespace brigade::nn {
namespace {

void check_shape(const char* layer, const Shape& normalized_shape) {
  bool right = !normalized_shape.empty();
  for (const int64_t size : normalized_shape)
    right = right && size >= 1;
  if (right) return;
  throw ValueError(std::string(layer) + ": normalized_shape must have sizes of at least 1, got " +
                   to_string(normalized_shape));
}

}  // namespace

LayerNormImpl::LayerNormImpl(const Shape& shape, const LayerNormOptions& o) : normalized_shape(shape), options(o) {
  check_shape("LayerNorm", shape);
  if (!o.elementwise_affine) return;
  weight = register_parameter("weight", ones(shape, o.dtype));
  if (o.bias) bias = register_parameter("bias", zeros(shape, o.dtype));
}

Tensor LayerNormImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  return layer_norm(x, normalized_shape, weight, bias, options.eps, where);
}

std::string LayerNormImpl::extra() const {
  return to_string(normalized_shape) + ", eps=" + detail::text_of(options.eps) +
         ", elementwise_affine=" + detail::text_of(options.elementwise_affine) +
         (options.elementwise_affine && !options.bias ? ", bias=false" : "");
}

RMSNormImpl::RMSNormImpl(const Shape& shape, const RMSNormOptions& o) : normalized_shape(shape), options(o) {
  check_shape("RMSNorm", shape);
  if (o.elementwise_affine) weight = register_parameter("weight", ones(shape, o.dtype));
}

Tensor RMSNormImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  return rms_norm(x, normalized_shape, weight, options.eps, where);
}

std::string RMSNormImpl::extra() const {
  return to_string(normalized_shape) + ", eps=" + (options.eps ? detail::text_of(*options.eps) : "none") +
         ", elementwise_affine=" + detail::text_of(options.elementwise_affine);
}

}  // namespace brigade::nn
