#include <brigade/optim/sgd.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/optimizer.h>
#include <brigade/nn/detail/text.h>

namespace brigade::optim {

void SGDOptions::check() const {
  const auto at_least_zero = [](double value, const char* what) {
    if (!(value >= 0)) throw ValueError(std::string("Invalid ") + what + ": " + nn::detail::text_of(value));
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
      Tensor buffer;
      const bool first = o.momentum != 0 && !state.momentum_buffer.defined();
      if (o.momentum != 0) buffer = first ? empty_like(parameter) : state.momentum_buffer;
      kernels::sgd_step(parameter, kernels::contiguous(grad), buffer,
                        {o.lr, o.momentum, o.dampening, o.weight_decay, o.nesterov, first, o.maximize});
      parameter.bump_version();
      // Only a step that was taken leaves a buffer: an uninitialised one must never be read.
      if (first) state.momentum_buffer = buffer;
      ++state.step;
    }
  }
}

}  // namespace brigade::optim
