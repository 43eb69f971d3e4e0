// The check of options and the step of Adam and AdamW, whose only difference is the weight decay.
#include <brigade/optim/adam.h>

#include <brigade/core/factory.h>
#include <brigade/core/warning.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/optimizer.h>
#include <brigade/optim/detail/device_state.h>
#include <brigade/optim/detail/option_checks.h>

#include <algorithm>
#include <cmath>
#include <string>

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

// Counts gradients whose second moment float16 cannot hold: (1 - beta2) g^2 is 0 below half of the smallest number. The
// divisor of later steps then ignores that gradient, while the first moment does not.
struct LostMoments {
  int64_t lost = 0, all = 0;

  explicit LostMoments(const StepBatch<AdamState>& batch) {
    for (size_t i = 0; i < batch.grads.size(); ++i) {
      const auto grad = batch.grads[i].to_vector<float>(), second = batch.states[i]->exp_avg_sq.to_vector<float>();
      for (size_t k = 0; k < grad.size(); ++k) {
        lost += grad[k] != 0 && second[k] == 0;
        all += grad[k] != 0;
      }
    }
  }
};

// Called after the first step. An eps of 1e-4 bounds the size of a step.
template <bool kDecoupled>
void warn_of_lost_moments(const AdamOptionsOf<kDecoupled>& o, const StepBatch<AdamState>& batch, SourceLocation where) {
  const Tensor& first = batch.parameters.front();
  if (batch.states.front()->step != 0 || first.dtype() != kFloat16 || first.device() != kCPU || o.eps >= 1e-4) return;
  const LostMoments found(batch);
  if (100 * found.lost <= found.all) return;
  using brigade::detail::in_words;
  const double least = std::round(1e4 * std::sqrt(0x1p-25 / (1 - o.betas[1]))) / 1e4;
  warn({(kDecoupled ? "AdamW.step() at " : "Adam.step() at ") + to_string(where) + ": the second moments of " +
            std::to_string(found.lost) + " of " + std::to_string(found.all) +
            " gradients are 0.\nwhy: float16 cannot hold (1 - beta2) g^2 of a g below " + in_words(least) +
            ": later steps divide by little more than eps " + in_words(o.eps) +
            ", and may move a parameter to infinity.",
        "keep float32 copies of the parameters (.master_weights = true), or compute in 16-mixed, whose parameters are "
        "in float32; to stay in float16, set .eps = 1e-4 or more"});
}

// Parameters of one batch: on the host, those with the same number of steps; on the device, those with the same clock,
// or those that get one.
template <class Options>
int64_t key_of(const Options& o, const AdamState& state) {
  if (!o.capturable) return state.steps();
  return state.clock ? reinterpret_cast<int64_t>(state.clock.get()) : -1 - state.step;
}

// The clock of a batch: a new one for parameters that have none, or that move without the others that shared it.
Tensor clock_of(const StepBatch<AdamState>& batch, const std::string& optimizer, SourceLocation where) {
  const std::shared_ptr<detail::AdamClock> shared = batch.states.front()->clock;
  if (shared && shared->members == batch.states.size()) return shared->numbers;
  const Tensor& first = batch.parameters.front();
  if (detail::is_captured(first)) detail::throw_first_in_capture(optimizer, first, where);
  const auto own = std::make_shared<detail::AdamClock>();
  own->members = batch.states.size();
  if (shared) {
    own->numbers = empty_like(shared->numbers);
    kernels::copy(own->numbers, shared->numbers);
    shared->members -= own->members;
  } else {
    own->numbers = kernels::make_adam_clock(-1 - batch.key, first.device());
  }
  for (AdamState* const state : batch.states)
    state->clock = own;
  return own->numbers;
}

template <bool kDecoupled>
void move(const AdamOptionsOf<kDecoupled>& o, const StepBatch<AdamState>& batch, const std::string& optimizer,
          SourceLocation where) {
  Tensor clock;
  if (o.capturable) {
    clock = clock_of(batch, optimizer, where);
    kernels::advance_adam_clock(clock, batch.scaling.device_found_inf, o.betas[0], o.betas[1]);
  } else if (batch.states.front()->clock) {  // the device has counted until now
    for (AdamState* const state : batch.states) {
      state->step = batch.key;
      state->clock.reset();
    }
  }
  kernels::foreach_adam_step(
      batch.parameters, batch.grads, batch.state(&AdamState::exp_avg), batch.state(&AdamState::exp_avg_sq),
      o.amsgrad ? batch.state(&AdamState::max_exp_avg_sq) : std::vector<Tensor>(),
      {o.lr, o.betas[0], o.betas[1], o.eps, o.weight_decay, batch.key + 1, kDecoupled, o.maximize,
       batch.scaling.grad_factor, batch.scaling.device_factor, batch.scaling.device_found_inf, batch.device_lr, clock});
}

template <class Groups>
bool all_capturable(const Groups& groups) {
  return std::ranges::all_of(groups, [](const auto& group) { return group.options.capturable; });
}

}  // namespace

bool Adam::can_step_unknown() const { return can_step_scaled() && all_capturable(all_groups()); }
bool AdamW::can_step_unknown() const { return can_step_scaled() && all_capturable(all_groups()); }

void Adam::do_step() {
  step_in_batches(key_of<AdamOptions>, [this](const AdamOptions& o, const StepBatch<AdamState>& batch) {
    move(o, batch, name(), stepping_at());
    warn_of_lost_moments(o, batch, stepping_at());
  });
}
void AdamW::do_step() {
  step_in_batches(key_of<AdamWOptions>, [this](const AdamWOptions& o, const StepBatch<AdamState>& batch) {
    move(o, batch, name(), stepping_at());
    warn_of_lost_moments(o, batch, stepping_at());
  });
}

}  // namespace brigade::optim
