// Chooses batch or running statistics, counts the batches, and checks the dimensions of each layer.
#include <brigade/nn/batch_norm.h>

#include <brigade/autograd/ops/normalization.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/detail/options.h>

namespace brigade::nn {

BatchNormImpl::BatchNormImpl(int64_t features, const BatchNormOptions& o) : num_features(features), options(o) {
  if (features < 1) throw ValueError("BatchNorm: num_features must be at least 1, got " + std::to_string(features));
  if (o.affine) {
    weight = register_parameter("weight", ones({features}, o.dtype));
    bias = register_parameter("bias", zeros({features}, o.dtype));
  }
  if (o.track_running_stats) {
    running_mean = register_buffer("running_mean", zeros({features}, o.dtype));
    running_var = register_buffer("running_var", ones({features}, o.dtype));
    num_batches_tracked = register_buffer("num_batches_tracked", zeros({}, kInt64));
  }
}

Tensor BatchNormImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  check_input(x, where);
  const bool tracking = options.track_running_stats && is_training();
  const bool by_batch = is_training() || !options.track_running_stats;
  double momentum = options.momentum.value_or(0);
  if (tracking && !options.momentum) {
    momentum = 1 / static_cast<double>(brigade::detail::element_as_int(num_batches_tracked, 0) + 1);
  }
  Tensor y = is_training() && training_forward_
                 ? training_forward_(x, momentum, where)
                 : batch_norm(x, weight, bias, running_mean, running_var, by_batch, momentum, options.eps, where);
  if (tracking) {
    // Count after the batch was normalized, so that a rejected batch does not count. Use kernels, because the buffer
    // may be on any device.
    kernels::copy(num_batches_tracked, kernels::binary_scalar(num_batches_tracked, 1, kernels::BinaryOp::Add, false));
    num_batches_tracked.bump_version();
  }
  return y;
}

std::string BatchNormImpl::extra() const {
  return std::to_string(num_features) + ", eps=" + detail::text_of(options.eps) +
         ", momentum=" + (options.momentum ? detail::text_of(*options.momentum) : "none") +
         ", affine=" + detail::text_of(options.affine) +
         ", track_running_stats=" + detail::text_of(options.track_running_stats);
}

namespace {

void check_dims(const char* layer, const char* expected, bool fits, const Tensor& x, SourceLocation where) {
  if (fits) return;
  throw ShapeError(std::string(layer) + ": expected " + expected + " input (got " + std::to_string(x.dim()) +
                       "D input " + to_string(x.sizes()) + ") (called at " + brigade::to_string(where) + ")",
                   where);
}

}  // namespace

void BatchNorm1dImpl::check_input(const Tensor& x, SourceLocation where) const {
  check_dims("BatchNorm1d", "2D or 3D", x.dim() == 2 || x.dim() == 3, x, where);
}
void BatchNorm2dImpl::check_input(const Tensor& x, SourceLocation where) const {
  check_dims("BatchNorm2d", "4D", x.dim() == 4, x, where);
}
void BatchNorm3dImpl::check_input(const Tensor& x, SourceLocation where) const {
  check_dims("BatchNorm3d", "5D", x.dim() == 5, x, where);
}

}  // namespace brigade::nn
