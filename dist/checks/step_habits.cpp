// Each check costs a few comparisons per parameter, and stops after its first warning.
#include <brigade/dist/checks/step_habits.h>

#include <brigade/autograd/meta.h>
#include <brigade/autograd/write_log.h>
#include <brigade/core/place.h>
#include <brigade/dist/diagnosis/cause.h>
#include <brigade/dist/diagnosis/kinds.h>
#include <brigade/dist/groups/own_collectives.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/dist/observers/wrapper_log.h>
#include <brigade/dist/reducer/reducer.h>
#include <brigade/optim/optimizer.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace brigade::dist {
namespace {

// Optimizers may take turns: after this many backwards each has had one.
constexpr uint64_t kBackwardsWithoutHolder = 8;
// Consecutive steps without a gradient: if nothing else moves, if other modules move, and if unused parameters are
// allowed.
constexpr uint64_t kStepsAlone = 2;
constexpr uint64_t kStepsBesideOthers = 3;
constexpr uint64_t kStepsOfUnused = 16;

// The number of module members that hold the parameter.
uint32_t places_of(const Tensor& parameter) {
  const autograd::AutogradMeta* const meta = autograd::meta(parameter);
  return meta ? meta->held_by_modules : 0;
}

Place registered_at(const Tensor& parameter) {
  const autograd::AutogradMeta* const meta = autograd::meta(parameter);
  return meta ? meta->registered_at : SourceLocation();
}

}  // namespace

std::unordered_set<const TensorImpl*> held_by_optimizers() {
  std::unordered_set<const TensorImpl*> held;
  for (const optim::Optimizer* optimizer : optim::optimizers_of_this_thread()) {
    for (const Tensor& parameter : optimizer->parameters())
      held.insert(parameter.impl());
  }
  return held;
}

StepHabits::StepHabits(Reducer& reducer, WrapperLog& log, std::function<std::vector<NamedParameter>()> parameters)
    : reducer_(reducer), log_(log), parameters_(std::move(parameters)) {
  for (const NamedParameter& each : reducer_.parameters())
    places_.push_back(places_of(each.tensor));
}

void StepHabits::warn(Verdict verdict) {
  verdict.ranks = {reducer_.group().rank()};
  verdict.iteration = reducer_.past().rounds;
  log_.advisories.add_own(verdict.kind + " " + name(verdict.cause.kind), std::move(verdict));
}

void StepHabits::note_first_step() {
  if (first_step_at_ != 0) return;
  first_step_at_ = reducer_.past().rounds + 1;
  writes_at_first_step_ = autograd::writes_by_hand();
}

void StepHabits::look_at(const autograd::Update& update) {
  note_first_step();
  look_for_backward(update);
  look_for_second_average(update);
  look_for_gone(update);
  look_for_unheld(update);
  backwards_at_[update.optimizer] = reducer_.past().rounds;
}

// Warns if no backward came since the optimizer's latest step: it has no gradients, or only those it has already
// used.
void StepHabits::look_for_backward(const autograd::Update& update) {
  const auto latest = backwards_at_.find(update.optimizer);
  if (reducer_.past().rounds != (latest == backwards_at_.end() ? 0 : latest->second)) {
    look_for_unreached(update);
    return look_for_cleared(update);
  }
  bool any = false;
  bool all_used = true;
  for (const Tensor& parameter : update.parameters) {
    const autograd::AutogradMeta* meta = autograd::meta(parameter);
    if (!meta || !meta->grad.defined()) continue;
    any = true;
    const autograd::GradStamp& stamp = meta->stamp;
    all_used = all_used && !stamp.by_hand && stamp.uses > 0 && stamp.backwards == stamp.backwards_used;
  }
  if (!any) {
    std::vector<ParameterVerdict> named;
    for (const Tensor& parameter : update.parameters) {
      const int64_t position = reducer_.find(parameter);
      if (position >= 0) named.push_back(about(reducer_.parameters()[static_cast<size_t>(position)], {}, {}));
    }
    warn(idle_step(
        {.optimizer = update.name, .parameters = names_in_words(named, 1), .used_at = {}, .step_at = update.where}));
  } else if (all_used && latest != backwards_at_.end()) {
    const auto first = std::find_if(update.parameters.begin(), update.parameters.end(),
                                    [](const Tensor& parameter) { return parameter.grad().defined(); });
    warn(idle_step({.optimizer = update.name,
                    .parameters = {},
                    .used_at = autograd::meta(*first)->stamp.used_at,
                    .step_at = update.where}));
  }
}

// Warns if a backward came but none of its gradients for this optimizer is left.
void StepHabits::look_for_cleared(const autograd::Update& update) {
  if (reducer_.forwards().unreached_by()) return;  // it had no gradients
  const autograd::GradStamp* cleared = nullptr;
  for (const Tensor& parameter : update.parameters) {
    const int64_t position = reducer_.find(parameter);
    const autograd::AutogradMeta* meta = autograd::meta(parameter);
    const bool is_left = meta && meta->grad.defined() && (meta->stamp.backwards > 0 || meta->stamp.by_hand);
    if (is_left) return;
    if (meta && position >= 0 && reducer_.past().users[static_cast<size_t>(position)] > 0) cleared = &meta->stamp;
  }
  if (!cleared) return;
  warn(idle_step({.optimizer = update.name,
                  .parameters = {},
                  .used_at = {},
                  .step_at = update.where,
                  .is_cleared = true,
                  .cleared_at = cleared->set_at}));
}

// Warns if a forward ran, and the backward that should belong to it, but no gradient came for this optimizer. A
// single such step is ignored: with several wrappers each loss may have its own step. More are if the backward reaches
// only another wrapper, which may take turns with this one.
void StepHabits::look_for_unreached(const autograd::Update& update) {
  auto& [steps, forward, ever] = unreached_[update.optimizer];
  std::vector<NamedParameter> waiting;
  bool others_move = false;
  for (const Tensor& parameter : update.parameters) {
    const int64_t position = reducer_.find(parameter);
    const autograd::AutogradMeta* meta = autograd::meta(parameter);
    const bool has_gradient = meta && meta->grad.defined() && (meta->stamp.backwards > 0 || meta->stamp.by_hand);
    if (position < 0) {
      others_move = others_move || has_gradient;
    } else if (has_gradient) {
      waiting.clear();
      ever = true;
      break;
    } else if (parameter.requires_grad()) {
      waiting.push_back(reducer_.parameters()[static_cast<size_t>(position)]);
    }
  }
  const std::optional<TracedBackward> backward = reducer_.forwards().unreached_by();
  const bool is_new = std::exchange(forward, reducer_.forwards().waiting()) != reducer_.forwards().waiting();
  if (waiting.empty() || !backward || !is_new) {
    steps = 0;
    return;
  }
  const ReducerOptions& options = reducer_.options();
  const bool others_reached = reducer_.forwards().others_were_reached() && !others_move;  // wrappers may take turns
  const bool may_be_unused = options.find_unused_parameters || options.static_graph || (others_reached && ever);
  const bool beside_others = others_move || others_reached;
  if (++steps != (may_be_unused ? kStepsOfUnused : beside_others ? kStepsBesideOthers : kStepsAlone)) return;
  std::vector<ParameterVerdict> parameters;
  for (const NamedParameter& each : waiting)
    parameters.push_back(about(each, {}, {}));
  WrappedModule wrapped{.diagnosis = true};
  if (options.module_paths) wrapped.paths = options.module_paths();
  warn(unreached_module(
      {.title = in_words(options.owner), .optimizer = update.name, .steps = steps, .step_at = update.where},
      std::move(parameters), CauseSearch(*backward, wrapped)(waiting.front())));
}

void StepHabits::look_for_second_average(const autograd::Update& update) {
  if (!reducer_.past().backward.sent) return;  // a communication hook left the gradients local: this is their average
  std::optional<SecondReduction> found;
  std::vector<ParameterVerdict> parameters;
  for (const Tensor& parameter : update.parameters) {
    const int64_t position = reducer_.find(parameter);
    const autograd::AutogradMeta* meta = autograd::meta(parameter);
    const ReducedByHand* const again =
        position < 0 || !meta->grad.defined() || meta->stamp.by_hand ? nullptr : reduced_by_hand(meta->grad);
    if (!again) continue;
    const auto managed = static_cast<uint32_t>(position);
    // The user averages what stayed local under no_sync.
    if (reducer_.accumulation().local(managed).backwards > 0 || reducer_.past().users[managed] == 0) continue;
    parameters.push_back(about(reducer_.parameters()[managed], {}, {}));
    if (found) continue;
    found = SecondReduction{again->op, again->ranks, again->where, update.where, ""};
    for (const autograd::Write& write : autograd::writes_to(meta->grad, again->writes)) {
      const std::string_view op = write.op;
      if (op == "div_" || op == "mul_") found->scaled_by = fmt::format("{} at {}", op, to_string(write.where));
    }
  }
  if (found) warn(averaged_twice(*found, std::move(parameters)));
}

// Checks whether the module still holds the parameters that the optimizer holds and no backward reaches.
void StepHabits::look_for_gone(const autograd::Update& update) {
  if (reducer_.past().rounds == 0 || log_.advisories.has("stale_optimizer replaced")) return;
  std::vector<NamedParameter> current;
  std::unordered_set<const TensorImpl*> held;
  for (const Tensor& parameter : update.parameters) {
    const int64_t position = reducer_.find(parameter);
    if (position < 0 || reducer_.past().users[static_cast<size_t>(position)] > 0) continue;
    if (current.empty()) {
      current = parameters_();
      for (const NamedParameter& each : current)
        held.insert(each.tensor.impl());
    }
    if (held.contains(parameter.impl())) continue;
    const NamedParameter& known = reducer_.parameters()[static_cast<size_t>(position)];
    const auto same_name = std::find_if(current.begin(), current.end(),
                                        [&](const NamedParameter& each) { return each.name == known.name; });
    StaleOptimizer found{update.name, update.made_at, update.where, known.name};
    if (same_name != current.end()) found.is_renewed = true, found.since = registered_at(same_name->tensor);
    return warn(stale_optimizer(found, about(known, {}, {})));
  }
  look_for_broken_ties(update);
  look_for_gone_modules(update);
}

// Warns if one of the two names of a tied weight now refers to another tensor. The old tensor is still used through
// the other name, so nothing is missing; but the new tensor is neither averaged nor moved.
void StepHabits::look_for_broken_ties(const autograd::Update& update) {
  bool any = false;
  for (size_t i = 0; i < places_.size() && !any; ++i)
    any = places_of(reducer_.parameters()[i].tensor) < places_[i];
  if (!any) return;
  const std::unordered_set<const TensorImpl*> held = held_by_optimizers();
  bool all_known = true;
  for (const NamedParameter& each : parameters_()) {
    if (!each.tensor.requires_grad() || reducer_.find(each.tensor) >= 0 || held.contains(each.tensor.impl())) continue;
    all_known = false;  // its first backward may be the next one
    if (each.tensor.grad().defined())
      return warn(stale_optimizer(
          {update.name, update.made_at, update.where, each.name, true, registered_at(each.tensor), true},
          about(each, {}, {})));
  }
  if (!all_known) return;
  for (size_t i = 0; i < places_.size(); ++i)
    places_[i] = std::min(places_[i], places_of(reducer_.parameters()[i].tensor));
}

// A layer was replaced before the module was wrapped and after its optimizer was created: the optimizer holds
// parameters that no module has, and does not move those that are averaged. (If the new layer is in another parameter
// group of it, the old one does no harm.) Or all that the optimizer holds are copies.
void StepHabits::look_for_gone_modules(const autograd::Update& update) {
  if (looked_for_gone_modules_ || reducer_.past().rounds == 0) return;
  const auto is_idle = [](const Tensor& parameter) {
    const autograd::AutogradMeta* meta = autograd::meta(parameter);
    return meta && meta->held_by_modules == 0 && !meta->grad.defined();
  };
  const auto gone = std::ranges::find_if(update.parameters, [&](const Tensor& parameter) {
    return is_idle(parameter) && !autograd::meta(parameter)->registered_as.empty();
  });
  const bool are_copies = gone == update.parameters.end();
  if (are_copies && (reducer_.past().rounds < kStepsBesideOthers || !std::ranges::all_of(update.parameters, is_idle)))
    return;
  looked_for_gone_modules_ = true;
  const std::vector<NamedParameter> unmoved = unheld(update);
  if (unmoved.empty()) return;
  std::vector<ParameterVerdict> parameters;
  StaleOptimizer found{update.name, update.made_at, update.where,
                       are_copies ? "" : autograd::meta(*gone)->registered_as};
  for (const NamedParameter& each : unmoved) {
    parameters.push_back(about(each, {}, {}));
    if (each.name == found.name) found.is_renewed = true, found.since = registered_at(each.tensor);
  }
  looked_for_unheld_ = true;  // this warning names them
  warn(optimizer_of_gone_module(found, std::move(parameters)));
}

std::vector<NamedParameter> StepHabits::unheld(const autograd::Update& update) const {
  std::unordered_set<const TensorImpl*> held = held_by_optimizers();
  for (const Tensor& parameter : update.parameters)
    held.insert(parameter.impl());
  const auto is_moved_by_hand = [&](const Tensor& parameter) {
    const std::optional<autograd::LastWrite> last = autograd::last_write(parameter);
    return last && last->by_hand && last->number > writes_at_first_step_;
  };
  std::vector<NamedParameter> found;
  for (size_t i = 0; i < reducer_.parameters().size(); ++i) {
    const NamedParameter& each = reducer_.parameters()[i];
    if (reducer_.past().users[i] > 0 && each.tensor.requires_grad() && !held.contains(each.tensor.impl()) &&
        !is_moved_by_hand(each.tensor))
      found.push_back(each);
  }
  return found;
}

void StepHabits::look_for_unheld(const autograd::Update& update) {
  if (looked_for_unheld_) return;
  if (reducer_.past().rounds < first_step_at_ + kBackwardsWithoutHolder) return;
  looked_for_unheld_ = true;
  std::vector<ParameterVerdict> parameters;
  for (const NamedParameter& each : unheld(update))
    parameters.push_back(about(each, {}, {}));
  if (!parameters.empty()) warn(unheld_parameters(std::move(parameters), update.where));
}

// --- Names an unmanaged parameter by its module, its optimizer, and the line that made it trainable.

std::string name_of_unmanaged(const autograd::Update& update, size_t position) {
  const autograd::AutogradMeta* const known = autograd::meta(update.parameters[position]);
  if (known && !known->registered_as.empty()) return known->registered_as;
  size_t number = 0;
  for (const optim::Optimizer* const each : optim::optimizers_of_this_thread()) {
    number += each->name() == update.name;
    if (each == update.optimizer) break;
  }
  const std::string name =
      fmt::format("parameter {} of {}{}", position, update.name, number > 1 ? fmt::format("#{}", number) : "");
  if (!known || known->requires_grad_set_at.line() == 0) return name;
  return fmt::format("{} (made at {})", name, to_string(known->requires_grad_set_at));
}

}  // namespace brigade::dist
