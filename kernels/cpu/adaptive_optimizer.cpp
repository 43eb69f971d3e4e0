// Each optimizer's step on the CPU is one loop over parameters, gradients and states together.
#include <brigade/kernels/optimizer.h>

#include <brigade/kernels/common/optimizer.h>
#include <brigade/kernels/common/optimizer_math.h>
#include <brigade/kernels/cpu/detail/multi_tensor.h>

namespace brigade::kernels {
namespace {

void foreach_rmsprop_step_cpu(TensorList params, TensorList grads, TensorList square_avgs, TensorList grad_avgs,
                              TensorList momentum_buffers, const RmspropParams& r) {
  check_foreach_rmsprop(params, grads, square_avgs, grad_avgs, momentum_buffers);
  if (params.empty()) return;
  const bool centered = !grad_avgs.empty();
  if (centered && !momentum_buffers.empty()) {
    cpu::update_rows({params, grads, square_avgs, grad_avgs, momentum_buffers},
                     [&]<class C>() { return RmspropUpdate<C, true, true>(r); });
  } else if (centered) {
    cpu::update_rows({params, grads, square_avgs, grad_avgs},
                     [&]<class C>() { return RmspropUpdate<C, true, false>(r); });
  } else if (!momentum_buffers.empty()) {
    cpu::update_rows({params, grads, square_avgs, momentum_buffers},
                     [&]<class C>() { return RmspropUpdate<C, false, true>(r); });
  } else {
    cpu::update_rows({params, grads, square_avgs}, [&]<class C>() { return RmspropUpdate<C, false, false>(r); });
  }
}

void foreach_adagrad_step_cpu(TensorList params, TensorList grads, TensorList sums, const AdagradParams& a) {
  check_foreach_adagrad(params, grads, sums);
  if (params.empty()) return;
  cpu::update_rows({params, grads, sums}, [&]<class C>() { return AdagradUpdate<C>(a); });
}

void foreach_adadelta_step_cpu(TensorList params, TensorList grads, TensorList square_avgs, TensorList acc_deltas,
                               const AdadeltaParams& a) {
  check_foreach_adadelta(params, grads, square_avgs, acc_deltas);
  if (params.empty()) return;
  cpu::update_rows({params, grads, square_avgs, acc_deltas}, [&]<class C>() { return AdadeltaUpdate<C>(a); });
}

void foreach_radam_step_cpu(TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                            const RAdamParams& r) {
  check_foreach_radam(params, grads, exp_avgs, exp_avg_sqs);
  if (params.empty()) return;
  const double rectification = radam_rectification(r.beta2, r.step);
  if (rectification != 0) {
    cpu::update_rows({params, grads, exp_avgs, exp_avg_sqs},
                     [&]<class C>() { return RAdamUpdate<C, true>(r, rectification); });
  } else {
    cpu::update_rows({params, grads, exp_avgs, exp_avg_sqs}, [&]<class C>() { return RAdamUpdate<C, false>(r, 1); });
  }
}

void foreach_nadam_step_cpu(TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                            const NAdamParams& n) {
  check_foreach_nadam(params, grads, exp_avgs, exp_avg_sqs);
  if (params.empty()) return;
  cpu::update_rows({params, grads, exp_avgs, exp_avg_sqs}, [&]<class C>() { return NAdamUpdate<C>(n); });
}

void foreach_lion_step_cpu(TensorList params, TensorList grads, TensorList exp_avgs, const LionParams& l) {
  check_foreach_lion(params, grads, exp_avgs);
  if (params.empty()) return;
  cpu::update_rows({params, grads, exp_avgs}, [&]<class C>() { return LionUpdate<C>(l); });
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
