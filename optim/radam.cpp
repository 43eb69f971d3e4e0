// RAdam's check of options, and its step by one kernel for all parameters with the same step count.
#include <brigade/optim/radam.h>

#include <brigade/kernels/optimizer.h>
#include <brigade/optim/detail/option_checks.h>

namespace brigade::optim {

void RAdamOptions::check() const {
  detail::check_at_least_zero("learning rate", lr);
  detail::check_at_least_zero("epsilon value", eps);
  detail::check_betas(betas);
  detail::check_at_least_zero("weight_decay value", weight_decay);
}

void RAdam::do_step() {
  step_in_batches(
      [](const RAdamState& state) { return state.step; },
      [](const RAdamOptions& o, const StepBatch<RAdamState>& batch) {
        kernels::foreach_radam_step(
            batch.parameters, batch.grads, batch.state(&RAdamState::exp_avg), batch.state(&RAdamState::exp_avg_sq),
            {o.lr, o.betas[0], o.betas[1], o.eps, o.weight_decay, batch.key + 1, o.decoupled_weight_decay, o.maximize});
      });
}

}  // namespace brigade::optim
