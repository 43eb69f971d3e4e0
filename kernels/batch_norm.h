// Batch normalisation over dimension 1 of x [N, C, ...] (Ioffe and Szegedy, arXiv 1502.03167).
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

struct BatchNorm {
  Tensor y;
  Tensor mean;    // [C], of the batch when training, else the running one
  Tensor invstd;  // [C], 1 / sqrt(variance + eps)
};
// weight, bias [C], contiguous, may be undefined. Training: uses batch statistics (biased variance)
// and moves running_mean and running_var (unbiased variance; both may be undefined) by `momentum`.
// Statistics are kept in float for half types. Throws ShapeError, DTypeError, DeviceError;
// ValueError "Expected more than 1 value per channel when training".
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

// --- The same in parts, for statistics over more than this batch: the caller combines the moments
// and adds up the sums of all batches (dist/ddp/sync_batch_norm.h). With the moments and sums of x
// itself the results are, bit for bit, those of the functions above. x may be empty. Throw
// ShapeError.

// [2, C] float64: the mean per channel, then the sum of squared distances from it. Zeros for an
// empty batch.
extern Kernel<Tensor(const Tensor& x)> batch_norm_moments;
// The moments [2, C] of several batches together, from rows [batches, 2 C + 1] in float64: of each batch its moments, then
// how many values it has per channel. Taken in the order of the rows, so that the same rows give the same bits (Chan, Golub,
// LeVeque: "Updating formulae and a pairwise algorithm for computing sample variances", 1979). Zeros where all are empty.
extern Kernel<Tensor(const Tensor& rows)> batch_norm_combine;
// batch_norm in training, where the moments are of `count` (> 1) values per channel.
extern Kernel<BatchNorm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                        const Tensor& running_var, const Tensor& moments, int64_t count, double momentum, double eps)>
    batch_norm_apply;
// [2, C] float64: the sum of grad (the gradient of bias), then of grad * normalised x (the gradient
// of weight).
extern Kernel<Tensor(const Tensor& grad, const Tensor& x, const Tensor& mean, const Tensor& invstd)>
    batch_norm_gradient_sums;
// The gradient of x, where the sums are of `count` values per channel.
extern Kernel<Tensor(const Tensor& grad, const Tensor& x, const Tensor& weight, const Tensor& mean,
                     const Tensor& invstd, const Tensor& sums, int64_t count)>
    batch_norm_input_gradient;

}  // namespace brigade::kernels
