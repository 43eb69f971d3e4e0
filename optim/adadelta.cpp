// Adadelta's check of options, and its step by one kernel for each batch of parameters.
#include <brigade/optim/adadelta.h>

#include <brigade/kernels/optimizer.h>
#include <brigade/optim/detail/option_checks.h>

namespace brigade::optim {

void AdadeltaOptions::check() const {
  detail::check_at_least_zero("learning rate", lr);
  detail::check_option(rho >= 0 && rho <= 1, "rho value", rho);
  detail::check_at_least_zero("epsilon value", eps);
  detail::check_at_least_zero("weight_decay value", weight_decay);
}

void Adadelta::do_step() {
  step_in_batches([](const AdadeltaState&) { return 0; },
                  [](const AdadeltaOptions& o, const StepBatch<AdadeltaState>& batch) {
                    kernels::foreach_adadelta_step(
                        batch.parameters, batch.grads, batch.state(&AdadeltaState::square_avg),
                        batch.state(&AdadeltaState::acc_delta), {o.lr, o.rho, o.eps, o.weight_decay, o.maximize});
                  });
}

}  // namespace brigade::optim
