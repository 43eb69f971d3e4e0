#include <brigade/nn/batch_norm.h>

#include <brigade/autograd/grad_mode.h>
#include <brigade/autograd/ops/batch_norm.h>
#include <brigade/kernels/factory.h>

namespace brigade::nn {

BatchNorm2dImpl::BatchNorm2dImpl(int64_t features, const BatchNormOptions& o) : options(o), num_features(features) {
  if (features < 1) throw ValueError("BatchNorm2d: num_features must be at least 1, got " + std::to_string(features));
  if (o.affine) {
    weight = register_parameter("weight", ones({features}));
    bias = register_parameter("bias", zeros({features}));
  }
  if (o.track_running_stats) {
    running_mean = register_buffer("running_mean", zeros({features}));
    running_var = register_buffer("running_var", ones({features}));
    num_batches_tracked = register_buffer("num_batches_tracked", zeros({}, kInt64));
  }
}

Tensor BatchNorm2dImpl::forward(const Tensor& x, SourceLocation where) {
  if (x.dim() != 4)
    throw ShapeError("BatchNorm2d: expected 4D input (got " + std::to_string(x.dim()) + "D input) (called at " +
                         to_string(where) + ")",
                     where);
  const bool by_batch = is_training() || !options.track_running_stats;
  if (is_training() && options.track_running_stats) {
    *num_batches_tracked.data_ptr<int64_t>() += 1;
    num_batches_tracked.bump_version();
  }
  return batch_norm(x, weight, bias, running_mean, running_var, by_batch, options.momentum, options.eps, where);
}

}  // namespace brigade::nn
