#include <brigade/optim/adam.h>

#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/optimizer.h>

namespace brigade::optim {

template <bool kDecoupled>
void AdamOptionsOf<kDecoupled>::check() const {
  if (!(lr >= 0)) throw ValueError("Invalid learning rate: " + std::to_string(lr));
  if (!(eps >= 0)) throw ValueError("Invalid epsilon value: " + std::to_string(eps));
  if (!(beta1 >= 0 && beta1 < 1)) throw ValueError("Invalid beta parameter at index 0: " + std::to_string(beta1));
  if (!(beta2 >= 0 && beta2 < 1)) throw ValueError("Invalid beta parameter at index 1: " + std::to_string(beta2));
  if (!(weight_decay >= 0)) throw ValueError("Invalid weight_decay value: " + std::to_string(weight_decay));
}

template struct AdamOptionsOf<false>;
template struct AdamOptionsOf<true>;

namespace {

template <bool kDecoupled>
void step_parameter(const Tensor& parameter, AdamState& state, const AdamOptionsOf<kDecoupled>& o) {
  const Tensor grad = parameter.grad();
  if (!grad.defined()) return;
  if (!state.exp_avg.defined()) {
    state.exp_avg = zeros_like(parameter);
    state.exp_avg_sq = zeros_like(parameter);
  }
  if (o.amsgrad && !state.max_exp_avg_sq.defined()) state.max_exp_avg_sq = zeros_like(parameter);
  ++state.step;
  kernels::adam_step(parameter, kernels::contiguous(grad), state.exp_avg, state.exp_avg_sq,
                     o.amsgrad ? state.max_exp_avg_sq : Tensor(),
                     {o.lr, o.beta1, o.beta2, o.eps, o.weight_decay, state.step, kDecoupled, o.maximize});
  parameter.bump_version();
}

}  // namespace

void Adam::do_step() {
  for (const Group& group : all_groups()) {
    for (const Tensor& parameter : group.parameters)
      step_parameter(parameter, state_of(parameter), group.options);
  }
}

void AdamW::do_step() {
  for (const Group& group : all_groups()) {
    for (const Tensor& parameter : group.parameters)
      step_parameter(parameter, state_of(parameter), group.options);
  }
}

}  // namespace brigade::optim
