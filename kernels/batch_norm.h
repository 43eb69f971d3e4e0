// Batch normalisation over dimension 1 of x [N, C, ...] (Ioffe and Szegedy, arXiv 1502.03167).
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

struct BatchNorm {
  Tensor y;
  Tensor mean;    // [C], of the batch when training, else the running one
  Tensor invstd;  // [C], 1 / sqrt(variance + eps)
};
// weight, bias [C] may be undefined. Training: uses batch statistics (biased variance) and moves running_mean and
// running_var (unbiased variance; both may be undefined) by `momentum`. Statistics are kept in float for half types.
// Throws ShapeError; ValueError "Expected more than 1 value per channel when training".
extern Kernel<BatchNorm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                        const Tensor& running_var, bool training, double momentum, double eps)>
    batch_norm;
struct BatchNormGrads {
  Tensor x;
  Tensor weight;
  Tensor bias;
};
extern Kernel<BatchNormGrads(const Tensor& grad, const Tensor& x, const Tensor& weight, const Tensor& mean,
                             const Tensor& invstd, bool training)>
    batch_norm_backward;

}  // namespace brigade::kernels
