// Layer normalization (Ba, Kiros and Hinton, arXiv 1607.06450) and root mean square normalization
// (Zhang and Sennrich, arXiv 1910.07467) over the last dimensions of x.
//
// x [leading..., normalized_shape...]; weight and bias have normalized_shape, each may be
// undefined. Floating dtypes; half types are computed in float and rounded once, and their
// statistics are float. Throw ShapeError, DTypeError, DeviceError.
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

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

}  // namespace brigade::kernels
