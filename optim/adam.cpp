// The check of options and the step of Adam and AdamW, whose only difference is the weight decay.
#include <brigade/optim/adam.h>

#include <brigade/kernels/optimizer.h>
#include <brigade/optim/detail/option_checks.h>

namespace brigade::optim {

template <bool kDecoupled>
void AdamOptionsOf<kDecoupled>::check() const {
  detail::check_at_least_zero("learning rate", lr);
  detail::check_at_least_zero("epsilon value", eps);
  detail::check_betas(betas);
  detail::check_at_least_zero("weight_decay value", weight_decay);
}

template struct AdamOptionsOf<false>;
template struct AdamOptionsOf<true>;

namespace {

template <bool kDecoupled>
void move(const AdamOptionsOf<kDecoupled>& o, const StepBatch<AdamState>& batch) {
  kernels::foreach_adam_step(
      batch.parameters, batch.grads, batch.state(&AdamState::exp_avg), batch.state(&AdamState::exp_avg_sq),
      o.amsgrad ? batch.state(&AdamState::max_exp_avg_sq) : std::vector<Tensor>(),
      {o.lr, o.betas[0], o.betas[1], o.eps, o.weight_decay, batch.key + 1, kDecoupled, o.maximize, batch.grad_factor});
}

int64_t steps_of(const AdamState& state) { return state.step; }

}  // namespace

void Adam::do_step() { step_in_batches(steps_of, move<false>); }
void AdamW::do_step() { step_in_batches(steps_of, move<true>); }

}  // namespace brigade::optim
