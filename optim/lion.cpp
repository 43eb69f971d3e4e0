// Lion's check of options, and its step by one kernel for each batch of parameters.
#include <brigade/optim/lion.h>

#include <brigade/kernels/optimizer.h>
#include <brigade/optim/detail/option_checks.h>

namespace brigade::optim {

void LionOptions::check() const {
  detail::check_at_least_zero("learning rate", lr);
  detail::check_betas(betas);
  detail::check_at_least_zero("weight_decay value", weight_decay);
}

void Lion::do_step() {
  step_in_batches([](const LionState&) { return 0; },
                  [](const LionOptions& o, const StepBatch<LionState>& batch) {
                    kernels::foreach_lion_step(batch.parameters, batch.grads, batch.state(&LionState::exp_avg),
                                               {o.lr, o.betas[0], o.betas[1], o.weight_decay, o.maximize});
                  });
}

}  // namespace brigade::optim
