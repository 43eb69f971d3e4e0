// Device-independent argument checks of the optimizer steps.
#pragma once

#include <brigade/kernels/adaptive_optimizer.h>
#include <brigade/kernels/optimizer.h>

#include <initializer_list>
#include <span>

namespace brigade::kernels {

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

}  // namespace brigade::kernels
