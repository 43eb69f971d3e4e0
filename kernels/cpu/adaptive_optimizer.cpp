#include <brigade/kernels/adaptive_optimizer.h>

#include <brigade/kernels/cpu/detail/multi_tensor.h>
#include <brigade/kernels/detail/adaptive_optimizer_math.h>
#include <brigade/kernels/detail/optimizer_checks.h>

namespace brigade::kernels {

namespace {

void foreach_rmsprop_step_cpu(TensorList params, TensorList grads, TensorList square_avgs, TensorList grad_avgs,
                              TensorList momentum_buffers, const RmspropParams& r) {
  check_foreach_rmsprop(params, grads, square_avgs, grad_avgs, momentum_buffers);
  if (params.empty()) return;
  visit_floating(params.front().dtype(), "rmsprop step", [&]<class T>() {
    using C = compute_type<T>;
    const bool centered = !grad_avgs.empty();
    if (centered && !momentum_buffers.empty()) {
      cpu::update_rows<T>({params, grads, square_avgs, grad_avgs, momentum_buffers}, RmspropUpdate<C, true, true>(r));
    } else if (centered) {
      cpu::update_rows<T>({params, grads, square_avgs, grad_avgs}, RmspropUpdate<C, true, false>(r));
    } else if (!momentum_buffers.empty()) {
      cpu::update_rows<T>({params, grads, square_avgs, momentum_buffers}, RmspropUpdate<C, false, true>(r));
    } else {
      cpu::update_rows<T>({params, grads, square_avgs}, RmspropUpdate<C, false, false>(r));
    }
  });
}

void foreach_adagrad_step_cpu(TensorList params, TensorList grads, TensorList sums, const AdagradParams& a) {
  check_foreach_adagrad(params, grads, sums);
  if (params.empty()) return;
  visit_floating(params.front().dtype(), "adagrad step", [&]<class T>() {
    cpu::update_rows<T>({params, grads, sums}, AdagradUpdate<compute_type<T>>(a));
  });
}

void foreach_adadelta_step_cpu(TensorList params, TensorList grads, TensorList square_avgs, TensorList acc_deltas,
                               const AdadeltaParams& a) {
  check_foreach_adadelta(params, grads, square_avgs, acc_deltas);
  if (params.empty()) return;
  visit_floating(params.front().dtype(), "adadelta step", [&]<class T>() {
    cpu::update_rows<T>({params, grads, square_avgs, acc_deltas}, AdadeltaUpdate<compute_type<T>>(a));
  });
}

void foreach_radam_step_cpu(TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                            const RAdamParams& r) {
  check_foreach_radam(params, grads, exp_avgs, exp_avg_sqs);
  if (params.empty()) return;
  const double rectification = radam_rectification(r.beta2, r.step);
  visit_floating(params.front().dtype(), "radam step", [&]<class T>() {
    using C = compute_type<T>;
    if (rectification != 0) {
      cpu::update_rows<T>({params, grads, exp_avgs, exp_avg_sqs}, RAdamUpdate<C, true>(r, rectification));
    } else {
      cpu::update_rows<T>({params, grads, exp_avgs, exp_avg_sqs}, RAdamUpdate<C, false>(r, 1));
    }
  });
}

void foreach_nadam_step_cpu(TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                            const NAdamParams& n) {
  check_foreach_nadam(params, grads, exp_avgs, exp_avg_sqs);
  if (params.empty()) return;
  visit_floating(params.front().dtype(), "nadam step", [&]<class T>() {
    cpu::update_rows<T>({params, grads, exp_avgs, exp_avg_sqs}, NAdamUpdate<compute_type<T>>(n));
  });
}

void foreach_lion_step_cpu(TensorList params, TensorList grads, TensorList exp_avgs, const LionParams& l) {
  check_foreach_lion(params, grads, exp_avgs);
  if (params.empty()) return;
  visit_floating(params.front().dtype(), "lion step", [&]<class T>() {
    cpu::update_rows<T>({params, grads, exp_avgs}, LionUpdate<compute_type<T>>(l));
  });
}

}  // namespace

constinit Kernel<void(TensorList, TensorList, TensorList, TensorList, TensorList, const RmspropParams&)>
    foreach_rmsprop_step("foreach_rmsprop_step", &foreach_rmsprop_step_cpu);
constinit Kernel<void(TensorList, TensorList, TensorList, const AdagradParams&)> foreach_adagrad_step(
    "foreach_adagrad_step", &foreach_adagrad_step_cpu);
constinit Kernel<void(TensorList, TensorList, TensorList, TensorList, const AdadeltaParams&)> foreach_adadelta_step(
    "foreach_adadelta_step", &foreach_adadelta_step_cpu);
constinit Kernel<void(TensorList, TensorList, TensorList, TensorList, const RAdamParams&)> foreach_radam_step(
    "foreach_radam_step", &foreach_radam_step_cpu);
constinit Kernel<void(TensorList, TensorList, TensorList, TensorList, const NAdamParams&)> foreach_nadam_step(
    "foreach_nadam_step", &foreach_nadam_step_cpu);
constinit Kernel<void(TensorList, TensorList, TensorList, const LionParams&)> foreach_lion_step("foreach_lion_step",
                                                                                                &foreach_lion_step_cpu);

}  // namespace brigade::kernels
