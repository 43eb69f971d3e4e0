// The optimizers on the CPU: SGD and Adam in one loop over parameters, gradients and states together; Adam's clock and
// the loss scale.
#include <brigade/kernels/optimizer.h>

#include <brigade/kernels/common/optimizer.h>
#include <brigade/kernels/common/optimizer_math.h>
#include <brigade/kernels/cpu/detail/multi_tensor.h>

namespace brigade::kernels {

// --- SGD and Adam on the CPU: one loop over parameters, gradients and states together.

namespace {

template <class Update>
Update begun(Update update) {
  update.begin();
  return update;
}

bool moves(const Tensor& found_inf) { return !found_inf.defined() || *data_or_null<const float>(found_inf) == 0; }

void foreach_sgd_step_cpu(std::span<const Tensor> params, std::span<const Tensor> grads,
                          std::span<const Tensor> momentum_buffers, const SgdParams& s) {
  check_foreach_sgd(params, grads, momentum_buffers, s);
  if (params.empty() || !moves(s.found_inf)) return;
  if (momentum_buffers.empty()) {
    cpu::update_rows({params, grads}, [&]<class C>() { return begun(SgdUpdate<C, false>(s)); });
  } else {
    cpu::update_rows({params, grads, momentum_buffers}, [&]<class C>() { return begun(SgdUpdate<C, true>(s)); });
  }
}

void foreach_adam_step_cpu(std::span<const Tensor> params, std::span<const Tensor> grads,
                           std::span<const Tensor> exp_avgs, std::span<const Tensor> exp_avg_sqs,
                           std::span<const Tensor> max_exp_avg_sqs, const AdamParams& a) {
  check_foreach_adam(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, a);
  if (params.empty() || !moves(a.found_inf)) return;
  if (max_exp_avg_sqs.empty()) {
    cpu::update_rows({params, grads, exp_avgs, exp_avg_sqs}, [&]<class C>() { return begun(AdamUpdate<C, false>(a)); });
  } else {
    cpu::update_rows({params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs},
                     [&]<class C>() { return begun(AdamUpdate<C, true>(a)); });
  }
}

}  // namespace

constinit Kernel<void(TensorList, TensorList, TensorList, const SgdParams&)> foreach_sgd_step("foreach_sgd_step",
                                                                                              &foreach_sgd_step_cpu);
constinit Kernel<void(std::span<const Tensor>, std::span<const Tensor>, std::span<const Tensor>,
                      std::span<const Tensor>, std::span<const Tensor>, const AdamParams&)>
    foreach_adam_step("foreach_adam_step", &foreach_adam_step_cpu);

// --- CPU kernels of Adam's clock.

namespace {

void advance_adam_clock_cpu(const Tensor& clock, const Tensor& found_inf, double beta1, double beta2) {
  adam_clock_advance(clock, found_inf, beta1, beta2)();
}

}  // namespace

constinit Kernel<void(const Tensor&, const Tensor&, double, double)> advance_adam_clock("advance_adam_clock",
                                                                                        &advance_adam_clock_cpu);

// --- CPU kernels of the loss scale.

namespace {

void update_loss_scale_cpu(const Tensor& scale, const Tensor& inverse, const Tensor& growth_tracker,
                           const Tensor& found_inf, const LossScaleRule& rule) {
  loss_scale_update(scale, inverse, growth_tracker, found_inf, rule)();
}

}  // namespace

constinit Kernel<void(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const LossScaleRule&)>
    update_loss_scale("update_loss_scale", &update_loss_scale_cpu);

}  // namespace brigade::kernels
