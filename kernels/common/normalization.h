// Device-independent parts of the normalizations: checks, dense inputs, allocation of results.
#pragma once

#include <brigade/core/compiler.h>
#include <brigade/kernels/normalization.h>

namespace brigade::kernels {

// --- Layer norm and RMS norm, with the last step of a parameter's gradient.

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

// --- Group norm.

// x is [batch, groups, channels, area], dense; `channels` is the number of channels per group.
struct GroupNormLayout {
  int64_t batch = 0, groups = 1, channels = 1, area = 1;
  BRIGADE_HOST_DEVICE int64_t rows() const { return batch * groups; }
  BRIGADE_HOST_DEVICE int64_t length() const { return channels * area; }  // of a row
};

struct GroupNormPlan {
  GroupNormLayout layout;
  Tensor x;
  // Dense, of one dtype: that of x, or the compute type of x if one of them has another dtype.
  Tensor weight, bias;
  DType parameter_dtype;
  GroupNorm result;  // not filled
};
GroupNormPlan prepare_group_norm(const Tensor& x, int64_t groups, const Tensor& weight, const Tensor& bias);

struct GroupNormGradientPlan {
  GroupNormLayout layout;
  Tensor grad, x, weight;  // dense; the weight as above
  DType parameter_dtype;
  Tensor result;  // the gradient of x, not filled; undefined when it is not wanted
};
GroupNormGradientPlan prepare_group_norm_gradient(const Tensor& grad, const Tensor& x, const Tensor& weight,
                                                  const Tensor& mean, const Tensor& rstd,
                                                  const GroupNormBackwardOptions& options);

// --- Batch norm.

// x [batch, channels, area], dense.
struct BatchNormLayout {
  int64_t batch = 0, channels = 0, area = 1;
  BRIGADE_HOST_DEVICE int64_t count() const { return batch * area; }  // values per channel
};

struct BatchNormPlan {
  BatchNormLayout layout;
  Tensor x;          // dense
  BatchNorm result;  // not filled
};
// Throw ShapeError, DTypeError, DeviceError.
BatchNormPlan prepare_batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                                 const Tensor& running_var);
// Prepares x only: `result` stays undefined.
BatchNormPlan prepare_batch_norm_moments(const Tensor& x);
// Throws ValueError for a single value per channel in training, or missing running statistics in evaluation.
void check_batch_norm_mode(const BatchNormPlan& plan, const Tensor& running_mean, const Tensor& running_var,
                           bool training);
// Checks moments or gradient sums: [2, C] float64, dense.
void check_batch_norm_pairs(const Tensor& pairs, const Tensor& x, const char* what);

// Inputs and result of batch_norm_combine.
struct BatchNormRows {
  int64_t batches = 0, channels = 0;
  Tensor rows;    // dense
  Tensor result;  // [2, channels], not filled
};
// Throws ShapeError.
BatchNormRows prepare_batch_norm_combine(const Tensor& rows);

struct BatchNormGradientPlan {
  BatchNormLayout layout;
  Tensor x, grad;  // dense
  // The dtype of the gradients of weight and bias: that of the weight, or of the statistics if there is none.
  DType parameter_dtype;
};
BatchNormGradientPlan prepare_batch_norm_gradient(const Tensor& grad, const Tensor& x, const Tensor& weight,
                                                  const Tensor& mean, const Tensor& invstd);

// Training on an empty batch gives an empty result, leaves the running statistics unchanged, and gives weight and bias
// zero gradients; the returned statistics, which are never read, are 0.
BatchNorm batch_norm_of_nothing(const BatchNormPlan& plan);
BatchNormGrads batch_norm_gradients_of_nothing(const BatchNormGradientPlan& plan);

}  // namespace brigade::kernels
