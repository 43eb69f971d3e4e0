// Normalizations: batch, group, instance, layer and root mean square norm.
#pragma once

#include <brigade/core/tensor.h>

#include <optional>

namespace brigade {

// --- Batch normalization over dimension 1 (Ioffe and Szegedy, arXiv 1502.03167).

// x [N, C, ...]; weight, bias, running_mean, running_var [C], contiguous, each may be undefined
// (the running ones only when training). Training uses the batch's statistics and moves the running
// ones in place by `momentum`. Throws ShapeError, ValueError "Expected more than 1 value per
// channel when training, got input size ...".
Tensor batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                  const Tensor& running_var, bool training, double momentum = 0.1, double eps = 1e-5,
                  SourceLocation where = SourceLocation::current());

// --- Normalization of each sample over groups of its channels (Wu and He, arXiv 1803.08494), and over single channels
// (Ulyanov, Vedaldi and Lempitsky, arXiv 1607.08022).

// x [N, C, ...]; weight, bias [C], each may be undefined. (x - mean) / sqrt(biased variance + eps) * weight + bias,
// over each group of C / num_groups adjacent channels of a sample and all that follows. Throws ShapeError,
// DTypeError; ValueError where num_groups does not divide C, and "Expected more than 1 value per channel when training"
// for a single value per group in all.
Tensor group_norm(const Tensor& x, int64_t num_groups, const Tensor& weight = {}, const Tensor& bias = {},
                  double eps = 1e-5, SourceLocation where = SourceLocation::current());

// x [N, C, d1, ...]; weight, bias, running_mean, running_var [C], each may be undefined. With use_input_stats, each
// channel of each sample is normalized by its own mean and variance, and running statistics, if given, move in place by
// `momentum` towards the mean over the samples (of unbiased variances). Without it, the running statistics are used,
// which must be given. Throws ShapeError, DTypeError; ValueError "Expected more than 1 spatial element when training,
// got input size ...".
Tensor instance_norm(const Tensor& x, const Tensor& running_mean = {}, const Tensor& running_var = {},
                     const Tensor& weight = {}, const Tensor& bias = {}, bool use_input_stats = true,
                     double momentum = 0.1, double eps = 1e-5, SourceLocation where = SourceLocation::current());

// --- Normalization over the last dimensions: layer norm (Ba, Kiros and Hinton, arXiv 1607.06450) and root mean square
// norm (Zhang and Sennrich, arXiv 1910.07467).

// x [..., normalized_shape...]; weight, bias of normalized_shape, each may be undefined.
// (x - mean) / sqrt(biased variance + eps) * weight + bias. Throws ShapeError, DTypeError.
Tensor layer_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight = {}, const Tensor& bias = {},
                  double eps = 1e-5, SourceLocation where = SourceLocation::current());

// x / sqrt(mean of squares + eps) * weight. The default eps is the machine epsilon of the dtype of the computation
// (float32 for half types), as in PyTorch.
Tensor rms_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight = {},
                std::optional<double> eps = std::nullopt, SourceLocation where = SourceLocation::current());

}  // namespace brigade
