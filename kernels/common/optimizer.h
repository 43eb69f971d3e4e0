// Device-independent parts of the optimizer steps, Adam's clock and the loss scale: argument checks and updates.
#pragma once

#include <brigade/core/compiler.h>
#include <brigade/kernels/optimizer.h>

#include <cmath>
#include <initializer_list>
#include <span>

namespace brigade::kernels {

// --- Optimizer steps.

// One list of an optimizer step: one tensor per parameter, contiguous, with its shape and dtype.
struct StepList {
  const char* role;  // "momentum buffer"
  std::span<const Tensor> tensors;
  bool may_be_empty = false;  // the whole list
};
// Throws ShapeError for a list that does not fit, DTypeError and DeviceError for parameters with different dtypes or
// devices.
void check_step(const char* what, std::span<const Tensor> params, std::initializer_list<StepList> lists);

using TensorList = std::span<const Tensor>;
void check_foreach_sgd(TensorList params, TensorList grads, TensorList momentum_buffers, const SgdParams& options);
void check_foreach_adam(TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                        TensorList max_exp_avg_sqs, const AdamParams& options);
void check_foreach_rmsprop(TensorList params, TensorList grads, TensorList square_avgs, TensorList grad_avgs,
                           TensorList momentum_buffers);
void check_foreach_adagrad(TensorList params, TensorList grads, TensorList sums);
void check_foreach_adadelta(TensorList params, TensorList grads, TensorList square_avgs, TensorList acc_deltas);
void check_foreach_lion(TensorList params, TensorList grads, TensorList exp_avgs);
void check_foreach_radam(TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs);
void check_foreach_nadam(TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs);

// --- Operations on many gradients.

// Checks that all tensors are floating, of one dtype, on one device. Throws DTypeError, DeviceError.
void check_alike(const char* what, std::span<const Tensor> tensors);
void check_unscale(std::span<const Tensor> grads, const Tensor& inv_scale, const Tensor& found_inf);
void check_norm(std::span<const Tensor> tensors, const Tensor& out);
void check_clip(std::span<const Tensor> tensors, double bound);
void check_scale(std::span<const Tensor> tensors, const Tensor& by);

// --- Adam's clock.

struct AdamClockAdvance {
  double* clock;
  const float* found_inf;  // or null
  double beta1, beta2;

  BRIGADE_HOST_DEVICE void operator()() const {
    if (found_inf && *found_inf != 0) return;
    const double steps = clock[0] + 1;
    clock[0] = steps;
    clock[1] = 1 - std::pow(beta1, steps);
    clock[2] = std::sqrt(1 - std::pow(beta2, steps));
  }
};

// Checks the arguments.
AdamClockAdvance adam_clock_advance(const Tensor& clock, const Tensor& found_inf, double beta1, double beta2);
// Checks a clock that is an argument of the kernel `what`.
void check_adam_clock(const char* what, const Tensor& clock);

// --- The loss scale.

struct LossScaleUpdate {
  float* scale;
  float* inverse;
  int64_t* growth_tracker;
  const float* found_inf;
  LossScaleRule rule;

  BRIGADE_HOST_DEVICE void operator()() const {
    const LossScale next = next_loss_scale({*scale, *growth_tracker}, *found_inf != 0, rule);
    *scale = next.scale;
    *growth_tracker = next.growth_tracker;
    *inverse = static_cast<float>(1.0 / static_cast<double>(next.scale));
  }
};

// Checks the arguments.
LossScaleUpdate loss_scale_update(const Tensor& scale, const Tensor& inverse, const Tensor& growth_tracker,
                                  const Tensor& found_inf, const LossScaleRule& rule);

}  // namespace brigade::kernels
