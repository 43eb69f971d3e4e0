#include <brigade/optim/adam.h>

#include <brigade/kernels/factory.h>
#include <brigade/kernels/optimizer.h>
#include <brigade/nn/detail/text.h>
#include <brigade/optim/detail/batches.h>

namespace brigade::optim {

template <bool kDecoupled>
void AdamOptionsOf<kDecoupled>::check() const {
  const auto require = [](bool valid, const char* what, double value) {
    if (!valid) throw ValueError(std::string("Invalid ") + what + ": " + nn::detail::text_of(value));
  };
  require(lr >= 0, "learning rate", lr);
  require(eps >= 0, "epsilon value", eps);
  require(betas[0] >= 0 && betas[0] < 1, "beta parameter at index 0", betas[0]);
  require(betas[1] >= 0 && betas[1] < 1, "beta parameter at index 1", betas[1]);
  require(weight_decay >= 0, "weight_decay value", weight_decay);
}

template struct AdamOptionsOf<false>;
template struct AdamOptionsOf<true>;

namespace {

template <bool kDecoupled, class StateOf>
void step_group(std::span<const Tensor> all_parameters, const std::vector<Tensor>& all_grads,
                const AdamOptionsOf<kDecoupled>& o, StateOf&& state_of) {
  std::vector<AdamState*> states(all_parameters.size());
  const auto step_of = [&](size_t i) { return (states[i] = &state_of(all_parameters[i]))->step; };
  for (const detail::Batch& batch : detail::batches(all_grads, step_of)) {
    const std::vector<Tensor> parameters = batch.of(all_parameters);
    std::vector<Tensor> exp_avgs, exp_avg_sqs, max_exp_avg_sqs;
    exp_avgs.reserve(parameters.size());
    exp_avg_sqs.reserve(parameters.size());
    for (const size_t i : batch.members) {
      const Tensor& parameter = all_parameters[i];
      AdamState& state = *states[i];
      if (!state.exp_avg.defined()) {
        state.exp_avg = zeros_like(parameter);
        state.exp_avg_sq = zeros_like(parameter);
      }
      if (o.amsgrad && !state.max_exp_avg_sq.defined()) state.max_exp_avg_sq = zeros_like(parameter);
      exp_avgs.push_back(state.exp_avg);
      exp_avg_sqs.push_back(state.exp_avg_sq);
      if (o.amsgrad) max_exp_avg_sqs.push_back(state.max_exp_avg_sq);
    }
    kernels::foreach_adam_step(
        parameters, batch.of(all_grads), exp_avgs, exp_avg_sqs, max_exp_avg_sqs,
        {o.lr, o.betas[0], o.betas[1], o.eps, o.weight_decay, batch.key + 1, kDecoupled, o.maximize});
    for (const size_t i : batch.members) {
      ++states[i]->step;
      all_parameters[i].bump_version();
    }
  }
}

}  // namespace

void Adam::do_step() {
  for (const Group& group : all_groups()) {
    step_group(group.parameters, dense_gradients(group.parameters), group.options,
               [this](const Tensor& parameter) -> AdamState& { return state_of(parameter); });
  }
}

void AdamW::do_step() {
  for (const Group& group : all_groups()) {
    step_group(group.parameters, dense_gradients(group.parameters), group.options,
               [this](const Tensor& parameter) -> AdamState& { return state_of(parameter); });
  }
}

}  // namespace brigade::optim
