// SGD's check of options, and its step, which makes a momentum buffer from the first gradient.
#include <brigade/optim/sgd.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/optimizer.h>
#include <brigade/optim/detail/option_checks.h>

#include <algorithm>

namespace brigade::optim {

void SGDOptions::check() const {
  detail::check_at_least_zero("learning rate", lr);
  detail::check_at_least_zero("momentum value", momentum);
  detail::check_at_least_zero("weight_decay value", weight_decay);
  if (nesterov && (momentum <= 0 || dampening != 0))
    throw ValueError("Nesterov momentum requires a momentum and zero dampening");
}

bool SGD::keeps_state() const {
  return std::any_of(all_groups().begin(), all_groups().end(),
                     [](const Group& group) { return group.options.momentum != 0; });
}

// If the device skips a first step, the next step still reads the buffer. It holds zeros then, which make the usual
// step equal to a first one if there is no dampening.
bool SGD::can_step_unknown() const {
  return can_step_scaled() && std::none_of(all_groups().begin(), all_groups().end(), [](const Group& group) {
           return group.options.momentum != 0 && group.options.dampening != 0;
         });
}

void SGD::do_step() {
  const auto is_first = [](const SGDOptions& o, const SGDState& state) -> int64_t {
    return o.momentum != 0 && !state.momentum_buffer.defined();
  };
  step_in_batches(is_first, [](const SGDOptions& o, const StepBatch<SGDState>& batch) {
    const bool is_unknown = batch.scaling.device_found_inf.defined();
    const bool first = batch.key != 0 && !is_unknown;
    std::vector<Tensor> buffers;
    if (first) {
      for (const Tensor& parameter : batch.parameters)
        buffers.push_back(empty_like(parameter));
    } else if (o.momentum != 0) {
      buffers = batch.state(&SGDState::momentum_buffer);
    }
    kernels::foreach_sgd_step(
        batch.parameters, batch.grads, buffers,
        {o.lr, o.momentum, o.dampening, o.weight_decay, o.nesterov, first, o.maximize, batch.scaling.grad_factor,
         batch.scaling.device_factor, batch.scaling.device_found_inf, batch.device_lr});
    // Only a step that was taken leaves a buffer: an uninitialized one must never be read.
    for (size_t k = 0; k < buffers.size(); ++k)
      batch.states[k]->momentum_buffer = buffers[k];
  });
}

}  // namespace brigade::optim
