// RMSprop's check of options, and its step with the states that centering and momentum need.
#include <brigade/optim/rmsprop.h>

#include <brigade/kernels/optimizer.h>
#include <brigade/optim/detail/option_checks.h>

namespace brigade::optim {

void RMSpropOptions::check() const {
  detail::check_at_least_zero("learning rate", lr);
  detail::check_at_least_zero("epsilon value", eps);
  detail::check_at_least_zero("momentum value", momentum);
  detail::check_at_least_zero("weight_decay value", weight_decay);
  detail::check_at_least_zero("alpha value", alpha);
}

void RMSprop::do_step() {
  step_in_batches([](const RMSpropState&) { return 0; },
                  [](const RMSpropOptions& o, const StepBatch<RMSpropState>& batch) {
                    const std::vector<Tensor> none;
                    kernels::foreach_rmsprop_step(batch.parameters, batch.grads, batch.state(&RMSpropState::square_avg),
                                                  o.centered ? batch.state(&RMSpropState::grad_avg) : none,
                                                  o.momentum > 0 ? batch.state(&RMSpropState::momentum_buffer) : none,
                                                  {o.lr, o.alpha, o.eps, o.weight_decay, o.momentum, o.maximize});
                  });
}

}  // namespace brigade::optim
