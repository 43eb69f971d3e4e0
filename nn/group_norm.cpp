// Parameters, running statistics, forward and printed options of GroupNorm and InstanceNorm.
#include <brigade/nn/group_norm.h>

#include <brigade/autograd/ops/normalization.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/detail/options.h>

namespace brigade::nn {

GroupNormImpl::GroupNormImpl(int64_t groups, int64_t channels, const GroupNormOptions& o)
    : num_groups(groups), num_channels(channels), options(o) {
  if (groups < 1 || channels < 1 || channels % groups != 0) {
    throw ValueError("GroupNorm: num_channels must be divisible by num_groups, got " + std::to_string(channels) +
                     " channels and " + std::to_string(groups) + " groups");
  }
  if (!o.affine) return;
  weight = register_parameter("weight", ones({channels}, o.dtype));
  bias = register_parameter("bias", zeros({channels}, o.dtype));
}

Tensor GroupNormImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  return group_norm(x, num_groups, weight, bias, options.eps, where);
}

std::string GroupNormImpl::extra() const {
  return std::to_string(num_groups) + ", " + std::to_string(num_channels) + ", eps=" + detail::text_of(options.eps) +
         ", affine=" + detail::text_of(options.affine);
}

InstanceNormImpl::InstanceNormImpl(int64_t features, const InstanceNormOptions& o, int dims)
    : num_features(features), options(o), dims_(dims) {
  if (features < 1) throw ValueError("InstanceNorm: num_features must be at least 1, got " + std::to_string(features));
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

Tensor InstanceNormImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  const bool single = x.dim() == dims_ - 1;
  if (!single && x.dim() != dims_) {
    throw ShapeError("InstanceNorm" + std::to_string(dims_ - 2) + "d: expected " + std::to_string(dims_) + "D or " +
                         std::to_string(dims_ - 1) + "D input (got " + std::to_string(x.dim()) + "D input " +
                         to_string(x.sizes()) + ") (called at " + brigade::to_string(where) + ")",
                     where);
  }
  const Tensor batch = single ? x.unsqueeze(0, where) : x;
  const bool by_input = is_training() || !options.track_running_stats;
  const Tensor y = instance_norm(batch, running_mean, running_var, weight, bias, by_input, options.momentum.value_or(0),
                                 options.eps, where);
  return single ? y.squeeze(0, where) : y;
}

std::string InstanceNormImpl::extra() const {
  return std::to_string(num_features) + ", eps=" + detail::text_of(options.eps) +
         ", momentum=" + (options.momentum ? detail::text_of(*options.momentum) : "none") +
         ", affine=" + detail::text_of(options.affine) +
         ", track_running_stats=" + detail::text_of(options.track_running_stats);
}

}  // namespace brigade::nn
