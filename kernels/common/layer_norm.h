// Device-independent parts of layer norm and RMS norm: checks, dense inputs, allocation of results, the last step of a
// parameter's gradient.
#pragma once

#include <brigade/kernels/layer_norm.h>

#include <type_traits>

namespace brigade::kernels {

// x is [rows, length], dense. RMS norm has no mean and no bias: they are undefined.
struct LayerNormPlan {
  int64_t rows = 0, length = 0;
  Tensor x;
  // Dense, of one dtype: that of x, or the compute type of x if one of them has another dtype.
  Tensor weight, bias;
  DType parameter_dtype;
  Tensor y, mean, rstd;  // not filled
};
LayerNormPlan prepare_layer_norm(const char* what, const Tensor& x, const Shape& normalized_shape, const Tensor& weight,
                                 const Tensor& bias, bool centered);

struct LayerNormGradientPlan {
  int64_t rows = 0, length = 0;
  Tensor grad, x, weight;  // dense; the weight as above
  DType parameter_dtype;
  Tensor result;  // the gradient of x, not filled; undefined when it is not wanted
};
LayerNormGradientPlan prepare_layer_norm_gradient(const char* what, const Tensor& grad, const Tensor& x,
                                                  const Tensor& weight, const Tensor& mean, const Tensor& rstd,
                                                  const LayerNormBackwardOptions& options, bool centered);

// The gradient of a parameter from partial sums over rows, [parts, length] in the compute type of x. Undefined when it
// is not wanted.
Tensor sum_parts(const Tensor& parts, const ParameterGrad& to, const Shape& normalized_shape);

// Calls body<T, W>: T the type of x, W that of weight and bias.
template <class Body>
void visit_layer_norm(const char* what, DType dtype, DType parameter_dtype, Body&& body) {
  visit_floating(dtype, what, [&]<class T>() {
    if (parameter_dtype == dtype_of<T>) {
      body.template operator()<T, T>();
    } else {
      body.template operator()<T, compute_type<T>>();
    }
  });
}

}  // namespace brigade::kernels
