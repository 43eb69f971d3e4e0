// SGD's check of options, and its step, which makes a momentum buffer from the first gradient.
#include <brigade/optim/sgd.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/optimizer.h>
#include <brigade/optim/detail/batches.h>
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

void SGD::do_step() {
  for (const Group& group : all_groups()) {
    const SGDOptions& o = group.options;
    const std::vector<Tensor> all_grads = dense_gradients(group.parameters);
    std::vector<SGDState*> states(all_grads.size());
    const auto is_first = [&](size_t i) {
      states[i] = &state_of(group.parameters[i]);
      return o.momentum != 0 && !states[i]->momentum_buffer.defined();
    };
    for (const detail::Batch& batch : detail::batches(all_grads, is_first)) {
      const bool first = batch.key != 0;
      const std::vector<Tensor> parameters = batch.dense(group.parameters);
      std::vector<Tensor> buffers;
      if (o.momentum != 0) {
        buffers.reserve(parameters.size());
        for (size_t k = 0; k < parameters.size(); ++k)
          buffers.push_back(first ? empty_like(parameters[k]) : states[batch.members[k]]->momentum_buffer);
      }
      kernels::foreach_sgd_step(
          parameters, batch.of(all_grads), buffers,
          {o.lr, o.momentum, o.dampening, o.weight_decay, o.nesterov, first, o.maximize, grad_factor()});
      batch.write_back(group.parameters, parameters);
      for (size_t k = 0; k < parameters.size(); ++k) {
        group.parameters[batch.members[k]].bump_version();
        SGDState& state = *states[batch.members[k]];
        // Only a step that was taken leaves a buffer: an uninitialised one must never be read.
        if (first) state.momentum_buffer = buffers[k];
        ++state.step;
      }
    }
  }
}

}  // namespace brigade::optim
