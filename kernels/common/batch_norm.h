// Device-independent parts of batch norm: checks, dense inputs, allocation of results.
#pragma once

#include <brigade/core/host_device.h>
#include <brigade/kernels/batch_norm.h>

namespace brigade::kernels {

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
