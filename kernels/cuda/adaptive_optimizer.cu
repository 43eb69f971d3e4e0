// CUDA kernels of RMSprop, Adagrad, Adadelta, RAdam, NAdam and Lion.
#include <brigade/kernels/optimizer.h>

#include <brigade/kernels/common/optimizer.h>
#include <brigade/kernels/common/optimizer_math.h>
#include <brigade/kernels/cuda/detail/update_rows.h>

namespace brigade::kernels {
namespace {

void foreach_rmsprop_step_cuda(TensorList params, TensorList grads, TensorList square_avgs, TensorList grad_avgs,
                               TensorList momentum_buffers, const RmspropParams& r) {
  check_foreach_rmsprop(params, grads, square_avgs, grad_avgs, momentum_buffers);
  visit_floating(params.front().dtype(), "rmsprop step", [&]<class T>() {
    using C = compute_type<T>;
    const bool centered = !grad_avgs.empty();
    if (centered && !momentum_buffers.empty()) {
      cuda::update_rows<T>("rmsprop_step", {params, grads, square_avgs, grad_avgs, momentum_buffers},
                           RmspropUpdate<C, true, true>(r));
    } else if (centered) {
      cuda::update_rows<T>("rmsprop_step", {params, grads, square_avgs, grad_avgs}, RmspropUpdate<C, true, false>(r));
    } else if (!momentum_buffers.empty()) {
      cuda::update_rows<T>("rmsprop_step", {params, grads, square_avgs, momentum_buffers},
                           RmspropUpdate<C, false, true>(r));
    } else {
      cuda::update_rows<T>("rmsprop_step", {params, grads, square_avgs}, RmspropUpdate<C, false, false>(r));
    }
  });
}

void foreach_adagrad_step_cuda(TensorList params, TensorList grads, TensorList sums, const AdagradParams& a) {
  check_foreach_adagrad(params, grads, sums);
  visit_floating(params.front().dtype(), "adagrad step", [&]<class T>() {
    cuda::update_rows<T>("adagrad_step", {params, grads, sums}, AdagradUpdate<compute_type<T>>(a));
  });
}

void foreach_adadelta_step_cuda(TensorList params, TensorList grads, TensorList square_avgs, TensorList acc_deltas,
                                const AdadeltaParams& a) {
  check_foreach_adadelta(params, grads, square_avgs, acc_deltas);
  visit_floating(params.front().dtype(), "adadelta step", [&]<class T>() {
    cuda::update_rows<T>("adadelta_step", {params, grads, square_avgs, acc_deltas}, AdadeltaUpdate<compute_type<T>>(a));
  });
}

void foreach_radam_step_cuda(TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                             const RAdamParams& r) {
  check_foreach_radam(params, grads, exp_avgs, exp_avg_sqs);
  const double rectification = radam_rectification(r.beta2, r.step);
  visit_floating(params.front().dtype(), "radam step", [&]<class T>() {
    using C = compute_type<T>;
    if (rectification != 0) {
      cuda::update_rows<T>("radam_step", {params, grads, exp_avgs, exp_avg_sqs},
                           RAdamUpdate<C, true>(r, rectification));
    } else {
      cuda::update_rows<T>("radam_step", {params, grads, exp_avgs, exp_avg_sqs}, RAdamUpdate<C, false>(r, 1));
    }
  });
}

void foreach_nadam_step_cuda(TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                             const NAdamParams& n) {
  check_foreach_nadam(params, grads, exp_avgs, exp_avg_sqs);
  visit_floating(params.front().dtype(), "nadam step", [&]<class T>() {
    cuda::update_rows<T>("nadam_step", {params, grads, exp_avgs, exp_avg_sqs}, NAdamUpdate<compute_type<T>>(n));
  });
}

void foreach_lion_step_cuda(TensorList params, TensorList grads, TensorList exp_avgs, const LionParams& l) {
  check_foreach_lion(params, grads, exp_avgs);
  visit_floating(params.front().dtype(), "lion step", [&]<class T>() {
    cuda::update_rows<T>("lion_step", {params, grads, exp_avgs}, LionUpdate<compute_type<T>>(l));
  });
}

const AddKernel add_foreach_rmsprop_step(foreach_rmsprop_step, kCUDA, &foreach_rmsprop_step_cuda);
const AddKernel add_foreach_adagrad_step(foreach_adagrad_step, kCUDA, &foreach_adagrad_step_cuda);
const AddKernel add_foreach_adadelta_step(foreach_adadelta_step, kCUDA, &foreach_adadelta_step_cuda);
const AddKernel add_foreach_radam_step(foreach_radam_step, kCUDA, &foreach_radam_step_cuda);
const AddKernel add_foreach_nadam_step(foreach_nadam_step, kCUDA, &foreach_nadam_step_cuda);
const AddKernel add_foreach_lion_step(foreach_lion_step, kCUDA, &foreach_lion_step_cuda);

}  // namespace
}  // namespace brigade::kernels
