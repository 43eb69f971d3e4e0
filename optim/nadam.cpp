// NAdam's check of options, and its step, which batches parameters by product of momenta as well.
#include <brigade/optim/nadam.h>

#include <brigade/kernels/optimizer.h>
#include <brigade/optim/detail/option_checks.h>

#include <algorithm>
#include <utility>

namespace brigade::optim {

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

}  // namespace brigade::optim
