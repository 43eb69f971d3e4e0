#include <brigade/optim/sgd.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/optimizer.h>

namespace brigade::optim {

void SGDOptions::check() const {
  const auto at_least_zero = [](double value, const char* what) {
    if (!(value >= 0)) throw ValueError(std::string("Invalid ") + what + ": " + std::to_string(value));
  };
  at_least_zero(lr, "learning rate");
  at_least_zero(momentum, "momentum value");
  at_least_zero(weight_decay, "weight_decay value");
  if (nesterov && (momentum <= 0 || dampening != 0))
    throw ValueError("Nesterov momentum requires a momentum and zero dampening");
}

void SGD::do_step() {
  for (const Group& group : all_groups()) {
    const SGDOptions& o = group.options;
    for (const Tensor& parameter : group.parameters) {
      const Tensor grad = parameter.grad();
      if (!grad.defined()) continue;
      SGDState& state = state_of(parameter);
      const bool first = o.momentum != 0 && !state.momentum_buffer.defined();
      if (first) state.momentum_buffer = empty_like(parameter);
      kernels::sgd_step(parameter, kernels::contiguous(grad), o.momentum != 0 ? state.momentum_buffer : Tensor(),
                        {o.lr, o.momentum, o.dampening, o.weight_decay, o.nesterov, first, o.maximize});
      parameter.bump_version();
      ++state.step;
    }
  }
}

}  // namespace brigade::optim
