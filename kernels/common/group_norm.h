// Device-independent parts of group norm: checks, dense inputs, allocation of results.
#pragma once

#include <brigade/core/host_device.h>
#include <brigade/kernels/group_norm.h>

namespace brigade::kernels {

// x is [batch, groups, channels, area], dense; `channels` is the number of channels per group.
struct GroupNormLayout {
  int64_t batch = 0, groups = 1, channels = 1, area = 1;
  BRIGADE_HOST_DEVICE int64_t rows() const { return batch * groups; }
  BRIGADE_HOST_DEVICE int64_t length() const { return channels * area; }  // of a row
};

struct GroupNormPlan {
  GroupNormLayout layout;
  Tensor x;
  // Dense, of one dtype: that of x, or the compute type of x if one of them has another dtype.
  Tensor weight, bias;
  DType parameter_dtype;
  GroupNorm result;  // not filled
};
GroupNormPlan prepare_group_norm(const Tensor& x, int64_t groups, const Tensor& weight, const Tensor& bias);

struct GroupNormGradientPlan {
  GroupNormLayout layout;
  Tensor grad, x, weight;  // dense; the weight as above
  DType parameter_dtype;
  Tensor result;  // the gradient of x, not filled; undefined when it is not wanted
};
GroupNormGradientPlan prepare_group_norm_gradient(const Tensor& grad, const Tensor& x, const Tensor& weight,
                                                  const Tensor& mean, const Tensor& rstd,
                                                  const GroupNormBackwardOptions& options);

}  // namespace brigade::kernels
