// What the ranks exchange when their step digests differ, and the resulting verdicts.
#include <brigade/dist/checks/step.h>

#include <brigade/autograd/meta.h>
#include <brigade/autograd/tape.h>
#include <brigade/dist/checks/replaced_buffers.h>
#include <brigade/dist/checks/step_habits.h>
#include <brigade/dist/diagnosis/kinds.h>
#include <brigade/dist/diagnosis/wire.h>
#include <brigade/dist/errors/majority.h>
#include <brigade/optim/optimizer.h>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace brigade::dist {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GradientValues, direction, size)

namespace {

// Selects those of `parameters` that have one of the names.
std::vector<NamedParameter> named(std::span<const NamedParameter> parameters,
                                  const std::unordered_set<std::string>& names) {
  std::vector<NamedParameter> found;
  std::copy_if(parameters.begin(), parameters.end(), std::back_inserter(found),
               [&](const NamedParameter& each) { return names.contains(each.name); });
  return found;
}

// Names of the parameters whose gradients some rank has edited or set by hand.
std::unordered_set<std::string> touched(const std::vector<StepOnRank>& steps) {
  std::unordered_set<std::string> names;
  for (const StepOnRank& step : steps) {
    for (const auto& edit : step.edits)
      names.insert(edit.parameter);
    for (const auto& set : step.set_by_hand)
      names.insert(set.parameter);
  }
  return names;
}

// Names of the parameters that some rank has written by hand.
std::unordered_set<std::string> written_to(const std::vector<StepOnRank>& steps) {
  std::unordered_set<std::string> names;
  for (const StepOnRank& step : steps) {
    for (const auto& write : step.writes)
      names.insert(write.parameter);
  }
  return names;
}

// Whether the ranks' loss scalers have different scales.
bool have_other_scales(const std::vector<Verdict>& verdicts) {
  return std::ranges::any_of(
      verdicts, [](const Verdict& verdict) { return verdict.cause.op.find("loss scaler") != std::string::npos; });
}

// Names of the parameters that other optimizers of this thread hold and have already moved.
std::vector<std::string> moved_by_others(const autograd::Update& update, const Reducer& reducer) {
  std::vector<std::string> names;
  for (const optim::Optimizer* const each : optim::optimizers_of_this_thread()) {
    if (each == update.optimizer || each->steps_taken() == 0) continue;
    for (const Tensor& parameter : each->parameters()) {
      if (const int64_t position = reducer.find(parameter); position >= 0)
        names.push_back(reducer.parameters()[static_cast<size_t>(position)].name);
    }
  }
  return names;
}

// The calls that gave the groups the rates that they still have.
std::vector<StepOnRank::Edit> rates_set(const optim::Optimizer& optimizer) {
  std::vector<StepOnRank::Edit> found;
  for (const auto& [group, change] : optimizer.rate_changes()) {
    if (optimizer.lr(group) == change.lr)
      found.push_back({fmt::format("lr of group {}", group), "set by " + change.by, change.where});
  }
  return found;
}

// Converts to a dtype that values_of() accepts: buffers may be integers.
Tensor numbers_of(const Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  const autograd::Tape::Pause pause;
  const Tensor values = tensor.detach();
  return is_floating_point(values.dtype()) ? values : values.to(kFloat64);
}

}  // namespace

StepOnRank StepCheck::own_step(const autograd::Update& update) const {
  const Count count = count_of(update);
  const auto& optimizer = *static_cast<const optim::Optimizer*>(update.optimizer);
  StepOnRank step{.name = count.of_all ? fmt::format("step {} of {}", update.number, update.name)
                                       : fmt::format("step {} of {}", count.since, update.name),
                  .where = update.where,
                  .options = update.options(),
                  .gradients = {},
                  .edits = {},
                  .set_by_hand = {},
                  .writes = {},
                  .buffers = buffers_replaced(update),
                  .updated_buffers = buffers_updated(update),
                  .state_was_loaded = update.state_loaded_at.line() != 0,
                  .state_loaded_at = update.state_loaded_at,
                  .state_writes = state_written(update),
                  .members = {},
                  .hook_probes = log_.hook_probes,
                  .modes_are_known = modes_.are_known(reducer_.past().rounds),
                  .evaluating = modes_.evaluating(reducer_.past().rounds),
                  .in_join = count.in_join,
                  .since_join = count.since,
                  .optimizer = update.name,
                  .made_at = update.made_at,
                  .autocast = autocast_.seen(reducer_.past().rounds),
                  .moved_by_others = moved_by_others(update, reducer_),
                  .options_set = rates_set(optimizer),
                  .made_with = optimizer.made_with()};
  GroupAt group(update.groups);
  for (size_t i = 0; i < update.parameters.size(); ++i) {
    const Tensor& parameter = update.parameters[i];
    const Tensor grad = parameter.grad();
    step.gradients += grad.defined() ? '1' : '0';
    const int64_t position = reducer_.find(parameter);
    if (position >= 0) step.members.push_back({reducer_.parameters()[static_cast<size_t>(position)].name, group(i)});
    if (position < 0 || !grad.defined() || !uses_means() || is_judged_elsewhere(position)) continue;
    const auto managed = static_cast<uint32_t>(position);
    const std::string& name = reducer_.parameters()[managed].name;
    if (const autograd::GradStamp& stamp = autograd::meta(parameter)->stamp; stamp.by_hand)
      step.set_by_hand.push_back({name, stamp.set_at});
    for (const autograd::Write& write : edits_of(managed, grad))
      step.edits.push_back({name, write.op, write.where});
    if (may_be_edited_unseen(managed, grad)) step.edits.push_back(StepOnRank::Edit::unseen(name));
  }
  for (const auto& [i, writes] : written_by_hand(update))
    step.writes.insert(step.writes.end(), writes.begin(), writes.end());
  return step;
}

std::vector<NamedParameter> StepCheck::parameters_of(std::span<const std::vector<GradientValues>> states,
                                                     std::span<const size_t> positions,
                                                     const autograd::Update& update) const {
  std::vector<NamedParameter> found;
  for (size_t i = 0; i < positions.size(); ++i) {
    const bool alike = std::ranges::all_of(states, [&](const std::vector<GradientValues>& state) {
      return state.size() == positions.size() && states.front().size() == positions.size() &&
             state[i].is_like(states.front()[i]);
    });
    const int64_t managed = reducer_.find(update.parameters[positions[i]]);
    if (alike || managed < 0) continue;
    const NamedParameter& parameter = reducer_.parameters()[static_cast<size_t>(managed)];
    if (found.empty() || !found.back().tensor.is_same(parameter.tensor)) found.push_back(parameter);
  }
  return found;
}

std::optional<Verdict> StepCheck::differing_state(const autograd::Update& update, std::span<const StepOnRank> steps,
                                                  const Topic& about) const {
  const bool is_asked = std::any_of(
      steps.begin(), steps.end(), [](const auto& step) { return step.state_was_loaded || !step.state_writes.empty(); });
  if (!is_asked || !reducer_.past().backward.sent) return std::nullopt;
  std::vector<std::vector<GradientValues>> tensors;
  std::vector<std::vector<int64_t>> counts;
  const StateValues own = state_of(update);
  using Exchanged = std::pair<std::vector<GradientValues>, std::vector<int64_t>>;
  for (const std::string& text :
       group_.all_gather_text(to_text(Exchanged(own.tensors, own.steps)), about, update.where)) {
    auto [of_tensors, of_steps] = decoded<Exchanged>(text);
    tensors.push_back(std::move(of_tensors));
    counts.push_back(std::move(of_steps));
  }
  const std::vector<int> odd = odd_ranks(tensors, [](const auto& a, const auto& b) {
    return std::ranges::equal(a, b, [](const auto& x, const auto& y) { return x.is_like(y); });
  });
  if (!odd.empty())
    return other_state(steps, {odd, "moments, momentum", parameters_of(tensors, own.positions, update)}, update.name);
  const std::vector<int> odd_counts = odd_ranks(counts);
  if (odd_counts.empty()) return std::nullopt;
  return other_state(steps, {odd_counts, "the number of steps that it has taken", {}}, update.name);
}

std::vector<GradientsApart> StepCheck::differing(const std::vector<NamedParameter>& parameters, Compared compared,
                                                 const Topic& about, SourceLocation where) const {
  if (parameters.empty()) return {};
  const auto count = static_cast<int64_t>(2 * parameters.size());
  const Tensor own = group_.allocate(count, kFloat64);
  const Tensor all = group_.allocate(count * group_.size(), kFloat64);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Tensor& parameter = parameters[i].tensor;
    const GradientValues values = values_of(compared == Compared::Gradients ? parameter.grad() : numbers_of(parameter));
    own.data_ptr<double>()[2 * i] = values.direction;
    own.data_ptr<double>()[2 * i + 1] = values.size;
  }
  group_.all_gather(all, own, {.topic = about}, where)->wait();
  std::vector<GradientsApart> found;
  for (size_t i = 0; i < parameters.size(); ++i) {
    std::vector<GradientValues> values;
    for (int r = 0; r < group_.size(); ++r) {
      const double* const of_rank = all.data_ptr<double>() + r * count + 2 * static_cast<int64_t>(i);
      values.push_back({of_rank[0], of_rank[1]});
    }
    const auto unlike_first = [&](const GradientValues& each) { return !each.is_like(values.front()); };
    if (std::any_of(values.begin(), values.end(), unlike_first)) found.push_back({parameters[i], odd_among(values)});
  }
  return found;
}

std::vector<GradientsApart> StepCheck::left_apart_by_hook(std::span<const StepOnRank> steps, const Topic& about,
                                                          SourceLocation where) const {
  const auto is_alike = [&](const StepOnRank& step) {
    return std::ranges::equal(step.hook_probes, steps.front().hook_probes, [](double a, double b) {
      return GradientValues{a, 0}.is_like({b, 0});
    });
  };
  if (std::ranges::all_of(steps, is_alike)) return {};
  const auto parameters = reducer_.parameters();
  return differing({parameters.begin(), parameters.end()}, Compared::Gradients, about, where);
}

void StepCheck::warn_of_differences(std::span<const StepOnRank> steps) {
  const auto tell = [&](const char* key, std::optional<Verdict> verdict) {
    if (!verdict) return;
    verdict->iteration = reducer_.past().rounds;
    log_.advisories.add(key, std::move(*verdict));
  };
  tell(kModesDiffer, modes_differ(steps));
  tell(kAutocastDiffers, autocast_.compare(steps, reducer_.past().rounds));
}

void StepCheck::warn_of_drift(std::span<const StepOnRank> steps, const Topic& about, SourceLocation where) {
  const std::vector<GradientsApart> apart =
      differing(updated_on_all_ranks(checked_.buffers(), steps), Compared::Parameters, about, where);
  drifting_ = apart.empty() ? 0 : drifting_ + 1;
  if (drifting_ < 2) return;
  Verdict verdict = buffers_drift(steps.front().updated_buffers, apart, where);
  verdict.iteration = reducer_.past().rounds;
  log_.advisories.add(kBuffersDrift, std::move(verdict));
}

std::vector<Verdict> StepCheck::compare(const autograd::Update& update, const Topic& about) {
  const auto steps = decoded_of_all<StepOnRank>(group_.all_gather_text(to_text(own_step(update)), about, update.where));
  std::vector<NamedParameter> parameters;
  for (size_t i = 0; i < update.parameters.size(); ++i) {
    const int64_t position = reducer_.find(update.parameters[i]);
    parameters.push_back(
        {position < 0 ? name_of_unmanaged(update, i) : reducer_.parameters()[static_cast<size_t>(position)].name,
         update.parameters[i]});
  }
  std::vector<Verdict> verdicts = optimizers_differ(steps, update.name, parameters);
  const bool in_one_step =
      std::all_of(steps.begin(), steps.end(), [&](const StepOnRank& step) { return step.name == steps.front().name; });
  if (in_one_step) {
    const std::vector<GradientsApart> by_hook = left_apart_by_hook(steps, about, update.where);
    if (!by_hook.empty()) {
      Verdict verdict = hook_results_differ(reducer_.setup().hook->name(), by_hook, reducer_.past().backward.where);
      verdict.iteration = reducer_.past().rounds;
      log_.advisories.add(kHookResultsDiffer, std::move(verdict));
    }
    std::vector<GradientsApart> apart =
        differing(named(reducer_.parameters(), touched(steps)), Compared::Gradients, about, update.where);
    std::erase_if(apart, [&](const GradientsApart& each) { return find(by_hook, each.parameter.name) != nullptr; });
    if (have_other_scales(verdicts)) apart.clear();  // different unscaling explains the difference
    for (Verdict& edited : gradients_edited(steps, apart)) {
      std::erase_if(apart, [&](const GradientsApart& each) {
        return std::any_of(edited.parameters.begin(), edited.parameters.end(),
                           [&](const ParameterVerdict& known) { return known.name == each.parameter.name; });
      });
      verdicts.push_back(std::move(edited));
    }
    for (Verdict& verdict : gradients_set_by_hand(steps, apart))
      verdicts.push_back(std::move(verdict));
    const std::vector<GradientsApart> written =
        differing(named(reducer_.parameters(), written_to(steps)), Compared::Parameters, about, update.where);
    for (Verdict& verdict : parameters_written(steps, written))
      verdicts.push_back(std::move(verdict));
    const std::vector<NamedParameter> replaced = replaced_on_some_ranks(checked_.buffers(), steps);
    for (Verdict& verdict : buffers_written(steps, differing(replaced, Compared::Parameters, about, update.where)))
      verdicts.push_back(std::move(verdict));
    warn_of_drift(steps, about, update.where);
    if (std::optional<Verdict> verdict = differing_state(update, steps, about)) verdicts.push_back(std::move(*verdict));
  }
  warn_of_differences(steps);
  for (Verdict& verdict : verdicts)
    verdict.iteration = reducer_.past().rounds;
  std::erase_if(verdicts, [&](Verdict& verdict) {
    if (verdict.severity == Severity::Error) return false;
    log_.advisories.add(verdict.kind + " " + verdict.parameters.front().name, verdict);
    return true;
  });
  return verdicts;
}

}  // namespace brigade::dist
