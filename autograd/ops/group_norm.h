// Normalization of each sample over groups of its channels (Wu and He, arXiv 1803.08494), and over single channels
// (Ulyanov, Vedaldi and Lempitsky, arXiv 1607.08022).
#pragma once

#include <brigade/core/tensor.h>

namespace brigade {

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

}  // namespace brigade
