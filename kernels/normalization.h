// Layer, root mean square, group, instance and batch normalization.
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

// --- Layer normalization (Ba, Kiros and Hinton, arXiv 1607.06450) and root mean square normalization
// (Zhang and Sennrich, arXiv 1910.07467) over the last dimensions of x.
//
// x [leading..., normalized_shape...]; weight and bias have normalized_shape, each may be
// undefined. Floating dtypes; half types are computed in float and rounded once, and their
// statistics are float. Throw ShapeError, DTypeError, DeviceError.

struct LayerNorm {
  Tensor y;
  Tensor mean;  // [leading...]
  Tensor rstd;  // [leading...], 1 / sqrt(biased variance + eps)
};
// y = (x - mean) * rstd * weight + bias
extern Kernel<LayerNorm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight, const Tensor& bias,
                        double eps)>
    layer_norm;

struct RmsNorm {
  Tensor y;
  Tensor rstd;  // [leading...], 1 / sqrt(mean of squares + eps)
};
// y = x * rstd * weight
extern Kernel<RmsNorm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight, double eps)> rms_norm;

// Whether backward computes the gradient of a parameter, and its destination: `out` as in MatmulOptions, else a new
// tensor of `dtype`.
struct ParameterGrad {
  bool wanted = false;
  DType dtype = DType::Float32;
  Tensor out = {};
  bool accumulate = false;
};
struct LayerNormBackwardOptions {
  Shape normalized_shape;
  bool input = true;
  ParameterGrad weight = {}, bias = {};
};
struct LayerNormGrads {
  Tensor x, weight, bias;  // undefined where not wanted
};
// Uses the statistics of the forward. Deterministic: gradients of parameters are added up in a fixed order.
extern Kernel<LayerNormGrads(const Tensor& grad, const Tensor& x, const Tensor& weight, const Tensor& mean,
                             const Tensor& rstd, const LayerNormBackwardOptions& options)>
    layer_norm_backward;
extern Kernel<LayerNormGrads(const Tensor& grad, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                             const LayerNormBackwardOptions& options)>
    rms_norm_backward;

// --- Group normalization (Wu and He, arXiv 1803.08494) of x [N, C, ...]: the channels are split into `groups` runs of
// adjacent channels, and each group of each sample is normalized over its channels and all later dimensions; groups = C
// is instance normalization (Ulyanov, Vedaldi and Lempitsky, arXiv 1607.08022).
//
// weight and bias [C], each may be undefined. Floating dtypes; half types are computed in float and rounded once, and
// their statistics are float. Throw ShapeError, DTypeError, DeviceError, ValueError for groups that do not divide C.

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

// --- Batch normalization over dimension 1 of x [N, C, ...] (Ioffe and Szegedy, arXiv 1502.03167).

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
