// Batch normalization over dimension 1 of x [N, C, ...] (Ioffe and Szegedy, arXiv 1502.03167).
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

struct BatchNorm {
  Tensor y;
  Tensor mean;    // [C], the batch mean when training, else the running mean
  Tensor invstd;  // [C], 1 / sqrt(variance + eps)
};
// weight, bias [C], contiguous, may be undefined. Training: uses batch statistics (biased variance) and updates
// running_mean and running_var (unbiased variance; both may be undefined) with `momentum`. Statistics are kept in float
// for half types. Throws ShapeError, DTypeError, DeviceError; ValueError "Expected more than 1 value per channel when
// training".
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

// --- Batch normalization in parts, for statistics over several batches: the caller combines the moments and adds up
// the sums of all batches (dist/ddp/sync_batch_norm.h). With the moments and sums of x alone, the results are bitwise
// equal to those of the functions above. x may be empty. Throw ShapeError.

// [2, C] float64: the mean per channel, then the sum of squared distances from it. Zeros for an
// empty batch.
extern Kernel<Tensor(const Tensor& x)> batch_norm_moments;
// The combined moments [2, C] of several batches, from rows [batches, 2 C + 1] in float64: the moments of a batch, then
// its number of values per channel. Rows are combined in order, so that the same rows give the same bits (Chan, Golub,
// LeVeque: "Updating formulae and a pairwise algorithm for computing sample variances", 1979). Zeros when all batches
// are empty.
extern Kernel<Tensor(const Tensor& rows)> batch_norm_combine;
// batch_norm in training, with moments over `count` (> 1) values per channel.
extern Kernel<BatchNorm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                        const Tensor& running_var, const Tensor& moments, int64_t count, double momentum, double eps)>
    batch_norm_apply;
// [2, C] float64: the sum of grad (the gradient of bias), then of grad * normalized x (the gradient
// of weight).
extern Kernel<Tensor(const Tensor& grad, const Tensor& x, const Tensor& mean, const Tensor& invstd)>
    batch_norm_gradient_sums;
// The gradient of x, from sums over `count` values per channel.
extern Kernel<Tensor(const Tensor& grad, const Tensor& x, const Tensor& weight, const Tensor& mean,
                     const Tensor& invstd, const Tensor& sums, int64_t count)>
    batch_norm_input_gradient;

}  // namespace brigade::kernels
