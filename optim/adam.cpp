#include <brigade/optim/adam.h>

#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/optimizer.h>
#include <brigade/nn/detail/text.h>

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

template <bool kDecoupled>
void step_parameter(const Tensor& parameter, const Tensor& grad, AdamState& state, const AdamOptionsOf<kDecoupled>& o) {
  if (!state.exp_avg.defined()) {
    state.exp_avg = zeros_like(parameter);
    state.exp_avg_sq = zeros_like(parameter);
  }
  if (o.amsgrad && !state.max_exp_avg_sq.defined()) state.max_exp_avg_sq = zeros_like(parameter);
  kernels::adam_step(parameter, kernels::contiguous(grad), state.exp_avg, state.exp_avg_sq,
                     o.amsgrad ? state.max_exp_avg_sq : Tensor(),
                     {o.lr, o.betas[0], o.betas[1], o.eps, o.weight_decay, state.step + 1, kDecoupled, o.maximize});
  ++state.step;
  parameter.bump_version();
}

}  // namespace

void Adam::do_step() {
  for (const Group& group : all_groups()) {
    for (const Tensor& parameter : group.parameters) {
      if (const Tensor grad = parameter.grad(); grad.defined())
        step_parameter(parameter, grad, state_of(parameter), group.options);
    }
  }
}

void AdamW::do_step() {
  for (const Group& group : all_groups()) {
    for (const Tensor& parameter : group.parameters) {
      if (const Tensor grad = parameter.grad(); grad.defined())
        step_parameter(parameter, grad, state_of(parameter), group.options);
    }
  }
}

}  // namespace brigade::optim
