// The checks of options and the steps of Adagrad, RMSprop, Adadelta, RAdam, NAdam and Lion, each by one kernel for a
// batch of parameters.
#include <brigade/optim/adaptive.h>

#include <brigade/kernels/optimizer.h>
#include <brigade/optim/detail/option_checks.h>

#include <algorithm>
#include <utility>

namespace brigade::optim {

// --- Adagrad's check of options, and its step by one kernel for all parameters with the same step count.

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

// --- RMSprop's check of options, and its step with the states that centering and momentum need.

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

// --- Adadelta's check of options, and its step by one kernel for each batch of parameters.

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

// --- RAdam's check of options, and its step by one kernel for all parameters with the same step count.

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

// --- NAdam's check of options, and its step, which batches parameters by product of momenta as well.

void NAdamOptions::check() const {
  detail::check_at_least_zero("learning rate", lr);
  detail::check_at_least_zero("epsilon value", eps);
  detail::check_betas(betas);
  detail::check_at_least_zero("weight_decay value", weight_decay);
  detail::check_at_least_zero("momentum_decay value", momentum_decay);
}

void NAdam::do_step() {
  // The parameters of a batch share their step count and their product of momenta. With equal counts, the products may
  // differ if the betas were changed while one of the parameters had no gradient.
  std::vector<std::pair<int64_t, double>> ages;
  const auto age_of = [&](const NAdamState& state) {
    const std::pair<int64_t, double> age(state.step, state.mu_product);
    const auto found = std::find(ages.begin(), ages.end(), age);
    if (found != ages.end()) return found - ages.begin();
    ages.push_back(age);
    return std::ssize(ages) - 1;
  };
  step_in_batches(age_of, [&](const NAdamOptions& o, const StepBatch<NAdamState>& batch) {
    auto [step, mu_product] = ages[static_cast<size_t>(batch.key)];
    ++step;
    mu_product *= kernels::nadam_mu(o.betas[0], o.momentum_decay, step);
    kernels::foreach_nadam_step(batch.parameters, batch.grads, batch.state(&NAdamState::exp_avg),
                                batch.state(&NAdamState::exp_avg_sq),
                                {o.lr, o.betas[0], o.betas[1], o.eps, o.weight_decay, o.momentum_decay, step,
                                 mu_product, o.decoupled_weight_decay, o.maximize});
    for (NAdamState* state : batch.states)
      state->mu_product = mu_product;
  });
}

// --- Lion's check of options, and its step by one kernel for each batch of parameters.

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
