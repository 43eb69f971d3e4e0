// Normalization over the last dimensions: layer norm (Ba, Kiros and Hinton, arXiv 1607.06450) and root mean square norm
// (Zhang and Sennrich, arXiv 1910.07467).
#pragma once

#include <brigade/core/tensor.h>

#include <optional>

namespace brigade {

// x [..., normalized_shape...]; weight, bias of normalized_shape, each may be undefined.
// (x - mean) / sqrt(biased variance + eps) * weight + bias. Throws ShapeError, DTypeError.
Tensor layer_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight = {}, const Tensor& bias = {},
                  double eps = 1e-5, SourceLocation where = SourceLocation::current());

// x / sqrt(mean of squares + eps) * weight. The default eps is the machine epsilon of the dtype of the computation
// (float32 for half types), as in PyTorch.
Tensor rms_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight = {},
                std::optional<double> eps = std::nullopt, SourceLocation where = SourceLocation::current());

}  // namespace brigade
