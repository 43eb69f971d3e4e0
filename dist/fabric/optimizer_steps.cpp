// Steps optimizers through the loss scaler, and infers where an iteration ends.
#include <brigade/dist/fabric/optimizer_steps.h>

#include <brigade/autograd/meta.h>
#include <brigade/core/warning.h>
#include <brigade/dist/groups/own_collectives.h>
#include <brigade/dist/reducer/reducer.h>

#include <fmt/format.h>

#include <algorithm>
#include <exception>

namespace brigade::dist {
namespace {

// Advice for Fabric, which calls the scaler itself; empty if the scaler's own message suffices.
std::string advice_for(const std::string& message, const std::string& precision, const std::string& optimizer) {
  const auto says = [&](const char* words) { return message.find(words) != std::string::npos; };
  if (says("not scaled") || says("_scale is None")) {
    return " Under a Fabric of precision " + precision +
           " the loss is scaled by fabric.backward(loss): call it in the place of loss.backward().";
  }
  if (says("step() has already been called since the last update()") || says("unscaled already")) {
    return " Under a Fabric the scale is updated once per iteration: clear the gradients of " + optimizer +
           " between its steps (zero_grad()), and those of the other optimizers that its loss reaches, or toggle it.";
  }
  return "";
}

// Calls the scaler, and adds that advice to its errors.
template <class Call>
auto advised(const std::string& precision, const optim::Optimizer& optimizer, SourceLocation where, const Call& call) {
  try {
    return call();
  } catch (const autograd::ScalerError& error) {
    const std::string advice = advice_for(error.what(), precision, optimizer.name());
    if (advice.empty()) throw;
    throw autograd::ScalerError(error.what() + advice, where);
  }
}

}  // namespace

void OptimizerSteps::add(optim::Optimizer& optimizer, SourceLocation where) {
  for (const Entry& each : entries_) {
    if (each.optimizer == &optimizer) {
      throw ValueError(where, "An optimizer should be passed only once to the `setup` method; {} was set up before",
                       optimizer.name());
    }
  }
  entries_.push_back({.optimizer = &optimizer});
}

std::vector<optim::Optimizer*> OptimizerSteps::all() const {
  std::vector<optim::Optimizer*> optimizers;
  for (const Entry& each : entries_)
    optimizers.push_back(each.optimizer);
  return optimizers;
}

OptimizerSteps::Entry& OptimizerSteps::find(const optim::Optimizer& optimizer, SourceLocation where) {
  for (Entry& each : entries_) {
    if (each.optimizer == &optimizer) return each;
  }
  throw ValueError(where, "{} is not set up: call fabric.setup() or fabric.setup_optimizers()", optimizer.name());
}

bool OptimizerSteps::holds_scaled_gradients(const optim::Optimizer& optimizer) {
  const std::vector<Tensor> parameters = optimizer.parameters();
  return std::any_of(parameters.begin(), parameters.end(), [](const Tensor& parameter) {
    const autograd::AutogradMeta* const known = autograd::meta(parameter);
    if (!known || !known->grad.defined()) return false;
    const autograd::ScaleLabel& label = known->stamp.scale.label;
    if (label == autograd::ScaleKnown::Mixed) return true;
    return label == autograd::ScaleKnown::One && label.first.scaler != 0 && !label.first.is_unscaled();
  });
}

void OptimizerSteps::end_iteration(SourceLocation where) {
  scaler_.update(where);
  for (Entry& each : entries_)
    each.has_stepped = each.is_unscaled = false;
}

void OptimizerSteps::unscale(optim::Optimizer& optimizer, SourceLocation where) {
  Entry& entry = find(optimizer, where);
  if (!scaler_.is_enabled() || entry.is_unscaled) return;
  advised(precision_, optimizer, where, [&] { scaler_.unscale_(optimizer, where); });
  entry.is_unscaled = true;
}

namespace {

// Whether a wrapper or the user averages the parameter or its gradient.
bool is_averaged(const Tensor& parameter, const autograd::AutogradMeta& known) {
  return known.stamp.by_hand || was_reduced_by_hand(known.grad) || was_reduced_by_hand(parameter) ||
         is_reduced(parameter);
}

}  // namespace

// Detects averages of flattened parameters, or by all_gather, that are copied back: the parameters were written, and
// there was a collective.
bool OptimizerSteps::are_averaged_since(const Entry& entry) {
  if (collectives_of_this_thread() == entry.collectives) return false;
  return entry.lone.any_left([](const Tensor& parameter, uint32_t version) { return parameter.version() != version; });
}

// Counts steps of an optimizer that was set up while its module was not.
void OptimizerSteps::look_for_averages(Entry& entry, SourceLocation where) const {
  if (!expects_averages_ || entry.lone.is_over()) return;
  bool has_gradient = false;
  bool any_averaged = are_averaged_since(entry);
  for (const Tensor& parameter : entry.optimizer->parameters()) {
    const autograd::AutogradMeta* const known = autograd::meta(parameter);
    if (!known || !known->grad.defined()) continue;
    has_gradient = true;
    any_averaged = any_averaged || is_averaged(parameter, *known);
  }
  if (any_averaged) return entry.lone.end();
  if (has_gradient && entry.lone.add(entry.optimizer->name(), where)) tell_of(entry.lone);
}

void OptimizerSteps::note_lone_step(Entry& entry) const {
  if (!expects_averages_ || entry.lone.is_over()) return;
  for (const Tensor& parameter : entry.optimizer->parameters())
    entry.lone.leave(parameter, parameter.version());
  entry.collectives = collectives_of_this_thread();
}

void OptimizerSteps::tell_of(UnsyncedSteps& lone) {
  lone.end();
  warn(
      {fmt::format("Fabric: {}: its module was not set up, and in {} nothing has averaged its gradients or its "
                   "parameters: each rank trains a model of its own",
                   lone.second(), lone.how_many("all steps so far")),
       "set the module up with its optimizer (auto [model, optimizer] = fabric.setup(net, adam)) and call that model; or "
       "average the gradients before the step (fabric.group()->all_reduce(p.grad(), {.op = ReduceOp::Avg})), or the "
       "parameters every so often (average_parameters(*fabric.group(), net->parameters()))"});
}

void OptimizerSteps::tell_of_lone_steps() {
  for (Entry& each : entries_) {
    if (each.lone.are_enough() && !are_averaged_since(each)) tell_of(each.lone);
  }
}

OptimizerSteps::~OptimizerSteps() {
  if (std::uncaught_exceptions() > 0) return;  // the exception says more
  try {
    tell_of_lone_steps();
  } catch (...) {  // NOLINT(bugprone-empty-catch): a warning is not worth the end of the process
  }
}

bool OptimizerSteps::step_now(optim::Optimizer& optimizer, SourceLocation where) {
  Entry& entry = find(optimizer, where);
  look_for_averages(entry, where);
  if (!scaler_.is_enabled()) {
    optimizer.step(where);
    note_lone_step(entry);
    return true;
  }
  const bool has_moved = advised(precision_, optimizer, where, [&] { return scaler_.step(optimizer, where); });
  entry.has_stepped = true;
  note_lone_step(entry);
  if (std::all_of(entries_.begin(), entries_.end(), [](const Entry& each) { return each.has_stepped; }))
    end_iteration(where);
  return has_moved;
}

bool OptimizerSteps::step(optim::Optimizer& optimizer, SourceLocation where) {
  if (!hook_) return step_now(optimizer, where);
  bool has_moved = false;
  hook_(optimizer, [&] { return has_moved = step_now(optimizer, where); });
  return has_moved;
}

void OptimizerSteps::zero_grad(optim::Optimizer& optimizer, bool set_to_none, SourceLocation where) {
  const Entry& entry = find(optimizer, where);
  optimizer.zero_grad(set_to_none, where);
  if (!entry.has_stepped) return;
  const bool others_wait = std::any_of(entries_.begin(), entries_.end(), [](const Entry& each) {
    return !each.has_stepped && holds_scaled_gradients(*each.optimizer);
  });
  if (!others_wait) end_iteration(where);
}

}  // namespace brigade::dist
