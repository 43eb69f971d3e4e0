// Group normalization (Wu and He, arXiv 1803.08494) of x [N, C, ...]: the channels are split into `groups` runs of
// adjacent channels, and each group of each sample is normalized over its channels and all later dimensions; groups = C
// is instance normalization (Ulyanov, Vedaldi and Lempitsky, arXiv 1607.08022).
//
// weight and bias [C], each may be undefined. Floating dtypes; half types are computed in float and rounded once, and
// their statistics are float. Throw ShapeError, DTypeError, DeviceError, ValueError for groups that do not divide C.
#pragma once

#include <brigade/kernels/kernel.h>
#include <brigade/kernels/layer_norm.h>

namespace brigade::kernels {

struct GroupNorm {
  Tensor y;
  Tensor mean;  // [N, groups]
  Tensor rstd;  // [N, groups], 1 / sqrt(biased variance + eps)
};
// y = (x - mean) * rstd * weight + bias
extern Kernel<GroupNorm(const Tensor& x, int64_t groups, const Tensor& weight, const Tensor& bias, double eps)>
    group_norm;

struct GroupNormBackwardOptions {
  int64_t groups = 1;
  bool input = true;
  ParameterGrad weight = {}, bias = {};
};
struct GroupNormGrads {
  Tensor x, weight, bias;  // undefined where not wanted
};
// Uses the statistics of the forward. Deterministic: gradients of parameters are added up in a fixed order.
extern Kernel<GroupNormGrads(const Tensor& grad, const Tensor& x, const Tensor& weight, const Tensor& mean,
                             const Tensor& rstd, const GroupNormBackwardOptions& options)>
    group_norm_backward;

}  // namespace brigade::kernels
