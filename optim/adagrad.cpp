// Adagrad's check of options, and its step by one kernel for all parameters with the same step count.
#include <brigade/optim/adagrad.h>

#include <brigade/kernels/optimizer.h>
#include <brigade/optim/detail/option_checks.h>

namespace brigade::optim {

void AdagradOptions::check() const {
  detail::check_at_least_zero("learning rate", lr);
  detail::check_at_least_zero("lr_decay value", lr_decay);
  detail::check_at_least_zero("weight_decay value", weight_decay);
  detail::check_at_least_zero("initial_accumulator_value value", initial_accumulator_value);
  detail::check_at_least_zero("epsilon value", eps);
}

void Adagrad::do_step() {
  step_in_batches([](const AdagradState& state) { return state.step; },
                  [](const AdagradOptions& o, const StepBatch<AdagradState>& batch) {
                    kernels::foreach_adagrad_step(batch.parameters, batch.grads,
                                                  batch.state(&AdagradState::sum, o.initial_accumulator_value),
                                                  {o.lr, o.lr_decay, o.eps, o.weight_decay, batch.key + 1, o.maximize});
                  });
}

}  // namespace brigade::optim
