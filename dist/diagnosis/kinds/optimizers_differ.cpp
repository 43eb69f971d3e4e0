// optimizers_differ: the ranks take different optimizer steps, or their optimizers differ in class, hyperparameters or
// state, or update different parameters.
//
// Severity: error
// When: before `step()`
// Causes: `options_differ`, `steps_differ`, `values_differ`: optimizer state that a rank loaded or wrote to
#include <brigade/dist/diagnosis/kinds.h>
#include <brigade/dist/errors/majority.h>

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>

namespace brigade::dist {

namespace {

constexpr const char* kLossScaler = "loss scaler";  // begins the loss scaler's line, after those of the groups

std::vector<std::string> split(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t end = 0; (end = text.find(separator, begin)) != std::string::npos; begin = end + separator.size())
    parts.push_back(text.substr(begin, end - begin));
  parts.push_back(text.substr(begin));
  return parts;
}

// Hyperparameters that differ: "group 0: lr 0.1" against "group 0: lr 0.01" gives "lr of group 0".
std::string differing_options(const std::string& a, const std::string& b) {
  std::string found;
  const std::vector<std::string> groups_a = split(a, "\n");
  const std::vector<std::string> groups_b = split(b, "\n");
  for (size_t g = 0; g < std::min(groups_a.size(), groups_b.size()); ++g) {
    const std::vector<std::string> options_a = split(groups_a[g].substr(groups_a[g].find(':') + 1), ",");
    const std::vector<std::string> options_b = split(groups_b[g].substr(groups_b[g].find(':') + 1), ",");
    for (size_t i = 0; i < std::min(options_a.size(), options_b.size()); ++i) {
      if (options_a[i] == options_b[i]) continue;
      const std::string name = split(options_a[i].substr(1), " ").front();
      const std::string owner = groups_a[g].starts_with(kLossScaler) ? kLossScaler : fmt::format("group {}", g);
      found += fmt::format("{}{} of {}", found.empty() ? "" : ", ", name, owner);
    }
  }
  return found.empty() ? "parameter groups" : found;
}

using Key = std::function<std::string(const StepOnRank&)>;

std::vector<int> odd_by(std::span<const StepOnRank> steps, const Key& key) {
  std::vector<std::string> keys;
  for (const StepOnRank& step : steps)
    keys.push_back(key(step));
  return odd_ranks(keys);
}

std::string each_rank(std::span<const StepOnRank> steps, const Key& say) {
  std::string text;
  for (size_t r = 0; r < steps.size(); ++r)
    text += fmt::format("{}rank {}: {}", r > 0 ? "; " : "", r, say(steps[r]));
  return text;
}

// "at a.cpp:5", or "" where the ranks are at different lines.
std::string common_line(std::span<const StepOnRank> steps) {
  for (const StepOnRank& step : steps) {
    if (!(step.where == steps.front().where)) return "";
  }
  return "at " + to_string(steps.front().where);
}

// `odd`: the ranks that differ from the usual rank. No rank is blamed if they are not outvoted.
Verdict new_verdict(CauseKind cause, std::span<const StepOnRank> steps, const std::vector<int>& odd) {
  Verdict verdict;
  verdict.kind = "optimizers_differ";
  verdict.cause.kind = cause;
  verdict.ranks = outvoted(odd, steps.size());
  verdict.cause.place = steps[verdict.ranks.empty() ? 0 : static_cast<size_t>(odd.front())].where;
  return verdict;
}

Verdict different_steps(std::span<const StepOnRank> steps, const std::vector<int>& odd) {
  Verdict verdict = new_verdict(CauseKind::StepsDiffer, steps, odd);
  const auto say = [](const StepOnRank& step) { return step.name + " at " + to_string(step.where); };
  verdict.cause.text = "the ranks are in different optimizer steps: " + each_rank(steps, say);
  verdict.advice =
      "let every rank step the same optimizers, in the same order and equally often: decide on all ranks alike whether to skip";
  const auto is_first = [](const StepOnRank& step) { return step.in_join + step.since_join == 1; };
  if (std::ranges::any_of(steps, is_first))
    verdict.advice += ", and make a new optimizer, which counts from 1, on every rank or on none";
  return verdict;
}

// "AdamW, made at a.cpp:5". The line is unknown for an optimizer made by std::make_unique.
std::string maker_in_words(const StepOnRank& step) {
  return step.made_at ? fmt::format("{}, made at {}", step.optimizer, to_string(step.made_at))
                      : fmt::format("{}, which steps at {}", step.optimizer, to_string(step.where));
}

// The ranks update the same parameters with optimizers of different classes.
Verdict different_classes(std::span<const StepOnRank> steps, const std::vector<int>& odd) {
  Verdict verdict = new_verdict(CauseKind::OptionsDiffer, steps, odd);
  verdict.cause.op = "optimizer";
  const StepOnRank& named = steps[verdict.ranks.empty() ? 0 : static_cast<size_t>(odd.front())];
  if (named.made_at) verdict.cause.place = named.made_at;
  verdict.cause.text =
      fmt::format("the ranks move the same parameters by different optimizers: {}", each_rank(steps, &maker_in_words));
  verdict.advice = "make an optimizer of the same class on every rank";
  return verdict;
}

// Some ranks took fewer steps in a join, after which all ranks continue together. Their steps after the join differ
// only if the optimizer keeps state.
Verdict different_steps_in_join(std::span<const StepOnRank> steps, const std::vector<int>& odd,
                                const std::string& optimizer) {
  Verdict verdict = new_verdict(CauseKind::StepsDiffer, steps, odd);
  verdict.cause.text = fmt::format(
      "{} keeps state from step to step (momentum, moments, a count), and by the end of the join the ranks had taken "
      "different numbers of steps, so their models would part: {}",
      optimizer, each_rank(steps, [](const StepOnRank& step) { return fmt::format("{} steps", step.in_join); }));
  verdict.advice =
      "let a ZeroRedundancyOptimizer take part in the join (`Join({ddp, zero})`), which steps on every rank; or end all "
      "ranks together (`JoinOptions::throw_on_early_termination`); or make a new optimizer on every rank after the "
      "join. SGD without momentum needs none of it";
  return verdict;
}

Verdict different_options(std::span<const StepOnRank> steps, const std::vector<int>& odd_ranks,
                          const std::string& optimizer) {
  const StepOnRank& odd = steps[static_cast<size_t>(odd_ranks.front())];
  const auto usual =
      std::find_if(steps.begin(), steps.end(), [&](const StepOnRank& step) { return step.options != odd.options; });
  Verdict verdict = new_verdict(CauseKind::OptionsDiffer, steps, odd_ranks);
  const auto is_scaled = [](const StepOnRank& step) { return step.options.find(kLossScaler) != std::string::npos; };
  verdict.cause.op = is_scaled(odd) != is_scaled(*usual) ? fmt::format("whether a {} steps", kLossScaler)
                                                         : differing_options(usual->options, odd.options);
  const std::string line = common_line(steps);
  verdict.cause.text = fmt::format("{} differs between the ranks before {}{}: {}", verdict.cause.op, optimizer,
                                   line.empty() ? "" : " (" + line + ")", each_rank(steps, [&](const StepOnRank& step) {
                                     return line.empty() ? step.options + " at " + to_string(step.where) : step.options;
                                   }));
  verdict.advice =
      is_scaled(odd) != is_scaled(*usual) ? "step by the scaler on every rank, scaler.step(optimizer), or on none"
      : verdict.cause.op.find(kLossScaler) != std::string::npos
          ? "call update() on every rank equally often, and load the scaler's state on all; an optimizer "
            "whose parameters no wrapper manages may have been skipped on some ranks only"
          : "set the same options on every rank, and step schedulers equally often, by a value that is the "
            "same on every rank: all_reduce the loss or metric first (ReduceOp::Avg)";
  return verdict;
}

// "lr 0.1, momentum 0.9" for each group, and the options of a loss scaler.
std::vector<std::string> options_of_groups(const StepOnRank& step) {
  std::vector<std::string> groups = split(step.options, "\n");
  for (std::string& group : groups)
    group.erase(0, group.find(':') + 1);
  return groups;
}

// Whether the groups of all ranks have the same options, possibly in a different order of groups.
bool are_options_in_other_order(std::span<const StepOnRank> steps) {
  std::vector<std::vector<std::string>> sorted;
  for (const StepOnRank& step : steps) {
    sorted.push_back(options_of_groups(step));
    std::ranges::sort(sorted.back());
  }
  return std::ranges::all_of(sorted, [&](const auto& groups) { return groups == sorted.front(); });
}

Verdict groups_in_other_order(std::span<const StepOnRank> steps, const std::vector<int>& odd,
                              const std::string& optimizer) {
  Verdict verdict = new_verdict(CauseKind::OptionsDiffer, steps, odd);
  verdict.cause.op = "order of the parameter groups";
  verdict.cause.text = fmt::format(
      "the parameter groups of {} stand in another order: {}", optimizer,
      each_rank(steps, [](const StepOnRank& step) { return step.options + " at " + to_string(step.where); }));
  verdict.advice =
      "make the groups in the same order on every rank: schedules and checkpoints know them by their numbers (what an "
      "unordered container lists comes in any order)";
  return verdict;
}

// For each reduced parameter, its group on each rank; -1 if that rank's optimizer does not hold it.
using Groups = std::map<std::string, std::vector<int64_t>>;

Groups groups_of(std::span<const StepOnRank> steps) {
  Groups groups;
  for (size_t r = 0; r < steps.size(); ++r) {
    for (const StepOnRank::Member& member : steps[r].members)
      groups.try_emplace(member.parameter, steps.size(), -1).first->second[r] = static_cast<int64_t>(member.group);
  }
  return groups;
}

// Whether each parameter is updated by one rank alone, which then sends it to the others. False if another rank updates
// it with an optimizer other than that of this step.
bool are_dealt_out(const Groups& groups, std::span<const StepOnRank> steps) {
  return !groups.empty() && std::ranges::all_of(groups, [&](const auto& each) {
    const auto& [name, on_ranks] = each;
    return std::ranges::count_if(on_ranks, [](int64_t group) { return group >= 0; }) == 1 &&
           std::ranges::none_of(steps, [&](const StepOnRank& step) {
             return on_ranks[static_cast<size_t>(&step - steps.data())] < 0 &&
                    std::ranges::find(step.moved_by_others, name) != step.moved_by_others.end();
           });
  });
}

// Whether every rank's optimizer holds every parameter in `groups`.
bool hold_the_same(const Groups& groups) {
  return std::ranges::all_of(groups, [](const auto& each) { return std::ranges::count(each.second, -1) == 0; });
}

const NamedParameter* named(std::span<const NamedParameter> parameters, const std::string& name) {
  const auto found = std::ranges::find_if(parameters, [&](const NamedParameter& each) { return each.name == name; });
  return found == parameters.end() ? nullptr : &*found;
}

ParameterVerdict held(const std::string& name, const std::vector<int64_t>& groups,
                      std::span<const NamedParameter> parameters) {
  ParameterVerdict verdict{.name = name};
  if (const NamedParameter* const known = named(parameters, name)) verdict = about(*known, {}, {});
  for (size_t r = 0; r < groups.size(); ++r)
    (groups[r] >= 0 ? verdict.ready_ranks : verdict.missing_ranks).push_back(static_cast<int>(r));
  return verdict;
}

// Returns a verdict if the optimizer holds some parameters on some ranks only.
std::optional<Verdict> different_members(std::span<const StepOnRank> steps, const Groups& groups,
                                         const std::string& optimizer, std::span<const NamedParameter> parameters) {
  std::vector<ParameterVerdict> apart;
  for (const auto& [name, on_ranks] : groups) {
    if (std::ranges::count(on_ranks, -1) > 0) apart.push_back(held(name, on_ranks, parameters));
  }
  if (apart.empty()) return std::nullopt;
  const auto odd = odd_by(steps, [&](const StepOnRank& step) {
    const auto rank = static_cast<size_t>(&step - steps.data());
    std::string held;
    for (const auto& [name, on_ranks] : groups)
      held += on_ranks[rank] >= 0 ? '1' : '0';
    return held;
  });
  Verdict verdict = new_verdict(CauseKind::OptionsDiffer, steps, odd);
  verdict.cause.op = "parameters";
  verdict.cause.text =
      fmt::format("{} holds {} on {} and not on {}, so it would move there only", optimizer, names_in_words(apart, 1),
                  ranks_in_words(apart.front().ready_ranks), ranks_in_words(apart.front().missing_ranks));
  verdict.parameters = std::move(apart);
  verdict.advice =
      "give the optimizer the same parameters on every rank, by add_param_group() in the same step. To deal them out by "
      "hand, let each belong to one rank alone, which sends it to the others after its step";
  return verdict;
}

// For ranks with the same options: returns a verdict if the options of some parameter's group differ between ranks.
std::optional<Verdict> different_groups(std::span<const StepOnRank> steps, const Groups& groups,
                                        const std::string& optimizer, std::span<const NamedParameter> parameters) {
  std::vector<std::vector<std::string>> options;
  for (const StepOnRank& step : steps)
    options.push_back(options_of_groups(step));
  const auto of = [&](size_t rank, int64_t group) {
    return group >= 0 && static_cast<size_t>(group) < options[rank].size() ? options[rank][group] : std::string();
  };
  Verdict verdict;
  for (const auto& [name, on_ranks] : groups) {
    std::vector<std::string> by_rank;
    for (size_t r = 0; r < steps.size(); ++r)
      by_rank.push_back(of(r, on_ranks[r]));
    const std::vector<int> odd = odd_ranks(by_rank);
    if (odd.empty()) continue;
    if (verdict.parameters.empty()) {
      verdict = new_verdict(CauseKind::OptionsDiffer, steps, odd);
      verdict.cause.op = "parameter groups";
      verdict.cause.text = fmt::format("{} holds {} in groups with other options: {}", optimizer, name,
                                       each_rank(steps, [&](const StepOnRank& step) {
                                         const auto rank = static_cast<size_t>(&step - steps.data());
                                         return fmt::format("group {},{}", on_ranks[rank], by_rank[rank]);
                                       }));
    }
    verdict.parameters.push_back(held(name, on_ranks, parameters));
  }
  if (verdict.parameters.empty()) return std::nullopt;
  verdict.advice = "put each parameter into the same group on every rank";
  return verdict;
}

Verdict different_gradients(std::span<const StepOnRank> steps, const std::vector<int>& odd,
                            std::span<const NamedParameter> parameters) {
  Verdict verdict = new_verdict(CauseKind::StepsDiffer, steps, odd);
  for (size_t i = 0; i < parameters.size(); ++i) {
    std::vector<int> with, without;
    for (size_t r = 0; r < steps.size(); ++r)
      (steps[r].gradients.substr(i, 1) == "1" ? with : without).push_back(static_cast<int>(r));
    if (!with.empty() && !without.empty()) verdict.parameters.push_back(about(parameters[i], with, without));
  }
  if (verdict.parameters.empty()) {
    verdict.cause.text = "a parameter has a gradient on some ranks only, so it would move there only";
  } else {
    const ParameterVerdict& first = verdict.parameters.front();
    verdict.cause.text = fmt::format("{} has a gradient on {} and none on {}, so it would move there only", first.name,
                                     ranks_in_words(first.ready_ranks), ranks_in_words(first.missing_ranks));
  }
  verdict.advice = "clear and set gradients on every rank alike";
  return verdict;
}

}  // namespace

std::vector<Verdict> optimizers_differ(std::span<const StepOnRank> steps, const std::string& optimizer,
                                       std::span<const NamedParameter> parameters) {
  const Groups groups = groups_of(steps);
  if (const auto ranks = odd_by(steps, [](const StepOnRank& step) { return step.name; }); !ranks.empty()) {
    const auto alike = [&](uint64_t StepOnRank::*count) {
      return std::all_of(steps.begin(), steps.end(),
                         [&](const StepOnRank& step) { return step.*count == steps.front().*count; });
    };
    if (alike(&StepOnRank::since_join) && !alike(&StepOnRank::in_join))
      return {different_steps_in_join(steps, ranks, optimizer)};
    const auto classes = odd_by(steps, [](const StepOnRank& step) { return step.optimizer; });
    const bool in_one_step = alike(&StepOnRank::since_join) && alike(&StepOnRank::in_join);
    if (classes.empty() || !in_one_step) return {different_steps(steps, ranks)};
    if (are_dealt_out(groups, steps)) return {};
    return {hold_the_same(groups) ? different_classes(steps, classes) : different_steps(steps, ranks)};
  }
  if (are_dealt_out(groups, steps)) return {};
  if (std::optional<Verdict> verdict = different_members(steps, groups, optimizer, parameters))
    return {std::move(*verdict)};  // nothing else can be compared
  std::vector<Verdict> verdicts;
  const bool in_other_order = are_options_in_other_order(steps);
  if (in_other_order) {
    if (std::optional<Verdict> verdict = different_groups(steps, groups, optimizer, parameters))
      verdicts.push_back(std::move(*verdict));
  }
  if (const auto ranks = odd_by(steps, [](const StepOnRank& step) { return step.options; });
      !ranks.empty() && verdicts.empty())
    verdicts.push_back(in_other_order ? groups_in_other_order(steps, ranks, optimizer)
                                      : different_options(steps, ranks, optimizer));
  const auto in_order = [](const StepOnRank& step) {
    std::string names;
    for (const StepOnRank::Member& member : step.members)
      names += member.parameter + "\n";
    return names;
  };
  if (!odd_by(steps, in_order).empty()) return verdicts;
  if (const auto ranks = odd_by(steps, [](const StepOnRank& step) { return step.gradients; }); !ranks.empty())
    verdicts.push_back(different_gradients(steps, ranks, parameters));
  return verdicts;
}

namespace {

bool has_changed_state(const StepOnRank& step) { return step.state_was_loaded || !step.state_writes.empty(); }

// The writes to state that differs between ranks; all writes if there are none.
std::vector<StepOnRank::Edit> telling(const std::vector<StepOnRank::Edit>& writes, const StatesApart& apart) {
  std::vector<StepOnRank::Edit> found;
  std::ranges::copy_if(writes, std::back_inserter(found), [&](const StepOnRank::Edit& write) {
    return named(apart.parameters, write.parameter) != nullptr;
  });
  return found.empty() ? writes : found;
}

// "load_state_dict at a.cpp:3", "mul_ at a.cpp:5, then fill_ at a.cpp:6".
std::string state_change_in_words(const StepOnRank& step, const StatesApart& apart) {
  if (step.state_writes.empty()) return "load_state_dict at " + to_string(step.state_loaded_at);
  std::vector<std::string> lines;
  for (const StepOnRank::Edit& write : telling(step.state_writes, apart)) {
    if (std::ranges::find(lines, write.in_words()) == lines.end()) lines.push_back(write.in_words());
  }
  return first_of(lines, 4, ", then ");
}

// For `ranks` that changed their states, at least one of them by hand.
Verdict state_written(std::span<const StepOnRank> steps, const std::vector<int>& ranks, const StatesApart& apart,
                      const std::string& optimizer) {
  std::vector<std::string> changes;
  for (const int rank : ranks)
    changes.push_back(
        fmt::format("{} (rank {})", state_change_in_words(steps[static_cast<size_t>(rank)], apart), rank));
  const auto writer =
      std::ranges::find_if(ranks, [&](int rank) { return !steps[static_cast<size_t>(rank)].state_writes.empty(); });
  const StepOnRank::Edit first = telling(steps[static_cast<size_t>(*writer)].state_writes, apart).front();
  Verdict verdict = new_verdict(CauseKind::ValuesDiffer, steps, ranks);
  verdict.ranks = ranks;
  verdict.cause.op = first.op;
  verdict.cause.place = first.where;
  verdict.cause.text = fmt::format("{} changed the state of {} ({}), and the ranks hold other values of it since",
                                   first_of(changes, 4, "; "), optimizer, apart.what);
  for (const NamedParameter& parameter : apart.parameters)
    verdict.parameters.push_back(about(parameter, {}, ranks));
  verdict.advice =
      "write the same to the optimizer's state on every rank. What state_dict() gives is the optimizer's own memory: "
      "clone() what is to be computed with";
  return verdict;
}

}  // namespace

Verdict other_state(std::span<const StepOnRank> steps, const StatesApart& apart, const std::string& optimizer) {
  // If there is a majority, ranks whose changed state equals that of the majority are not to blame.
  const std::vector<int> against_most = outvoted(apart.odd, steps.size());
  std::vector<int> changed, odd_and_changed;
  for (size_t r = 0; r < steps.size(); ++r) {
    const int rank = static_cast<int>(r);
    if (!has_changed_state(steps[r])) continue;
    changed.push_back(rank);
    if (std::find(against_most.begin(), against_most.end(), rank) != against_most.end())
      odd_and_changed.push_back(rank);
  }
  const std::vector<int>& ranks = odd_and_changed.empty() ? changed : odd_and_changed;
  const bool by_hand =
      std::ranges::any_of(ranks, [&](int rank) { return !steps[static_cast<size_t>(rank)].state_writes.empty(); });
  if (by_hand) return state_written(steps, ranks, apart, optimizer);
  const StepOnRank& first = steps[static_cast<size_t>(ranks.front())];
  Verdict verdict = new_verdict(CauseKind::ValuesDiffer, steps, ranks);
  verdict.ranks = ranks;
  verdict.cause.op = "load_state_dict";
  verdict.cause.place = first.state_loaded_at;
  verdict.cause.text =
      ranks.size() == steps.size()
          ? fmt::format(
                "the ranks loaded different states into {} ({}): {}", optimizer, apart.what,
                each_rank(steps, [](const StepOnRank& step) { return "at " + to_string(step.state_loaded_at); }))
          : fmt::format("{} loaded another state into {} ({}) at {} than the others hold", ranks_in_words(ranks),
                        optimizer, apart.what, to_string(verdict.cause.place));
  verdict.advice = "load the optimizer's state on every rank, from one file";
  return verdict;
}

}  // namespace brigade::dist
