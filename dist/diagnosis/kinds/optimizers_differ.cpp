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
#include <cstdlib>
#include <functional>
#include <iterator>
#include <map>
#include <set>

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

// One hyperparameter that differs: its group or the loss scaler, and its place there.
struct Option {
  size_t group = 0, place = 0;
  std::string name;  // "lr of group 0"
};

// " lr 0.1, momentum 0.9" for each group, and the options of a loss scaler.
std::vector<std::string> options_of_groups(const std::string& options) {
  std::vector<std::string> groups = split(options, "\n");
  for (std::string& group : groups)
    group.erase(0, group.find(':') + 1);
  return groups;
}

// "lr 0.1", "momentum 0.9" of each group.
std::vector<std::vector<std::string>> options_in(const std::string& text) {
  std::vector<std::vector<std::string>> groups;
  for (const std::string& group : options_of_groups(text))
    groups.push_back(split(group.substr(group.starts_with(' ') ? 1 : 0), ", "));
  return groups;
}

std::vector<Option> differing_options(const std::string& a, const std::string& b) {
  std::vector<Option> found;
  const auto groups_a = options_in(a), groups_b = options_in(b);
  const std::vector<std::string> lines = split(a, "\n");
  for (size_t g = 0; g < std::min(groups_a.size(), groups_b.size()); ++g) {
    for (size_t i = 0; i < std::min(groups_a[g].size(), groups_b[g].size()); ++i) {
      if (groups_a[g][i] == groups_b[g][i]) continue;
      const std::string owner = lines[g].starts_with(kLossScaler) ? kLossScaler : fmt::format("group {}", g);
      found.push_back({g, i, fmt::format("{} of {}", split(groups_a[g][i], " ").front(), owner)});
    }
  }
  return found;
}

// The value of that option; "" if there is none.
std::string value_of(const std::string& options, const Option& option) {
  const auto groups = options_in(options);
  if (option.group >= groups.size() || option.place >= groups[option.group].size()) return "";
  const std::string& text = groups[option.group][option.place];
  return text.substr(std::min(text.size(), text.find(' ') + 1));
}

// For each rank, the line that gave it the option's value, if known: the call that set it or, if none did, the
// construction.
std::vector<StepOnRank::Edit> origins(std::span<const StepOnRank> steps, const Option& option) {
  std::vector<StepOnRank::Edit> set(steps.size()), made;
  bool any_set = false;
  for (size_t r = 0; r < steps.size(); ++r) {
    const StepOnRank& step = steps[r];
    const auto found = std::ranges::find(step.options_set, option.name, &StepOnRank::Edit::parameter);
    if (found != step.options_set.end()) set[r] = *found;
    any_set = any_set || set[r].where;
    if (step.made_at && value_of(step.made_with, option) == value_of(step.options, option))
      made.push_back({option.name, step.optimizer + " made", step.made_at});
  }
  return !any_set && made.size() == steps.size() ? made : set;
}

// The values with few digits, if that tells them apart.
std::vector<std::string> shortened(const std::vector<std::string>& values) {
  std::vector<std::string> texts;
  for (const std::string& value : values) {
    char* end = nullptr;
    const double number = std::strtod(value.c_str(), &end);
    if (value.empty() || *end != '\0') return values;
    texts.push_back(fmt::format("{:.4g}", number));
  }
  const auto distinct = [](const std::vector<std::string>& all) { return std::set(all.begin(), all.end()).size(); };
  return distinct(texts) == distinct(values) ? texts : values;
}

using Key = std::function<std::string(const StepOnRank&)>;

std::vector<int> odd_by(std::span<const StepOnRank> steps, const Key& key) {
  std::vector<std::string> keys;
  for (const StepOnRank& step : steps)
    keys.push_back(key(step));
  return odd_ranks(keys);
}

std::string each_rank(std::span<const StepOnRank> steps, const Key& say) {
  std::vector<std::string> by_rank;
  for (const StepOnRank& step : steps)
    by_rank.push_back(say(step));
  return by_rank_in_words(by_rank);
}

// Whether the ranks are at different lines.
bool are_apart(std::span<const StepOnRank> steps) {
  return std::ranges::any_of(steps, [&](const StepOnRank& step) { return !(step.where == steps.front().where); });
}

// `odd`: the ranks that differ from the usual rank. No rank is blamed if they are not outvoted.
Verdict new_verdict(CauseKind cause, std::span<const StepOnRank> steps, const std::vector<int>& odd) {
  Verdict verdict = dist::new_verdict("optimizers_differ", Severity::Error, cause);
  verdict.ranks = outvoted(odd, steps.size());
  verdict.cause.place = steps[verdict.ranks.empty() ? 0 : static_cast<size_t>(odd.front())].where;
  return verdict;
}

Verdict different_steps(std::span<const StepOnRank> steps, const std::vector<int>& odd) {
  Verdict verdict = new_verdict(CauseKind::StepsDiffer, steps, odd);
  verdict.what = "The ranks are in different optimizer steps";
  verdict.cause.text = each_rank(
      steps, [](const StepOnRank& step) { return fmt::format("in {} at {}", step.name, to_string(step.where)); });
  verdict.advice =
      "step the same optimizers in the same order and equally often; decide on all ranks alike whether to skip";
  const auto is_first = [](const StepOnRank& step) { return step.in_join + step.since_join == 1; };
  if (std::ranges::any_of(steps, is_first))
    verdict.advice += ", and make a new optimizer, which counts from 1, on every rank or on none";
  return verdict;
}

// "has AdamW, made at a.cpp:5". The line is unknown for an optimizer made by std::make_unique.
std::string maker_in_words(const StepOnRank& step) {
  return step.made_at ? fmt::format("has {}, made at {}", step.optimizer, to_string(step.made_at))
                      : fmt::format("has {}, which steps at {}", step.optimizer, to_string(step.where));
}

// The ranks update the same parameters with optimizers of different classes.
Verdict different_classes(std::span<const StepOnRank> steps, const std::vector<int>& odd) {
  Verdict verdict = new_verdict(CauseKind::OptionsDiffer, steps, odd);
  verdict.cause.op = "optimizer";
  const StepOnRank& named = steps[verdict.ranks.empty() ? 0 : static_cast<size_t>(odd.front())];
  if (named.made_at) verdict.cause.place = named.made_at;
  verdict.what = "The ranks move the same parameters by different optimizers";
  verdict.cause.text = each_rank(steps, &maker_in_words);
  verdict.advice = "make an optimizer of the same class on every rank";
  return verdict;
}

// Some ranks took fewer steps in a join, after which all ranks continue together. Their steps after the join differ
// only if the optimizer keeps state.
Verdict different_steps_in_join(std::span<const StepOnRank> steps, const std::vector<int>& odd,
                                const std::string& optimizer) {
  Verdict verdict = new_verdict(CauseKind::StepsDiffer, steps, odd);
  verdict.what = "Different numbers of steps in the join";
  verdict.cause.text =
      fmt::format("{} keeps state from step to step, so the models would part: {}", optimizer,
                  each_rank(steps, [](const StepOnRank& step) { return fmt::format("took {} steps", step.in_join); }));
  verdict.advice =
      "let a ZeroRedundancyOptimizer join too (`Join({ddp, zero})`), or make a new optimizer on every rank after the join";
  return verdict;
}

Verdict different_options(std::span<const StepOnRank> steps, const std::vector<int>& odd_ranks) {
  const StepOnRank& odd = steps[static_cast<size_t>(odd_ranks.front())];
  const auto usual =
      std::find_if(steps.begin(), steps.end(), [&](const StepOnRank& step) { return step.options != odd.options; });
  Verdict verdict = new_verdict(CauseKind::OptionsDiffer, steps, odd_ranks);
  const auto is_scaled = [](const StepOnRank& step) { return step.options.find(kLossScaler) != std::string::npos; };
  const bool one_is_scaled = is_scaled(odd) != is_scaled(*usual);
  const std::vector<Option> options = differing_options(usual->options, odd.options);
  std::vector<std::string> names;
  for (const Option& option : options)
    names.push_back(option.name);
  verdict.cause.op = one_is_scaled     ? fmt::format("whether a {} steps", kLossScaler)
                     : options.empty() ? "parameter groups"
                                       : first_of(names, 8, ", ");
  verdict.what = verdict.cause.op + " differs between the ranks";
  std::vector<std::string> held;
  for (const StepOnRank& step : steps)
    held.push_back(one_is_scaled || options.empty() ? step.options : value_of(step.options, options.front()));
  held = shortened(held);
  const auto from =
      one_is_scaled || options.empty() ? std::vector<StepOnRank::Edit>(steps.size()) : origins(steps, options.front());
  const bool from_one_line =
      std::ranges::all_of(from, [&](const auto& each) { return each.where == from[0].where && each.op == from[0].op; });
  for (size_t r = 0; r < steps.size(); ++r) {
    held[r] = "has " + held[r] + (are_apart(steps) ? " at " + to_string(steps[r].where) : "");
    if (from[r].where && !from_one_line) held[r] += " (" + from[r].in_words() + ")";
  }
  verdict.cause.text = by_rank_in_words(held);
  if (from[0].where && from_one_line) verdict.cause.text += "; " + from[0].in_words();
  const auto named = std::ranges::find_if(from, [&](const StepOnRank::Edit& each) {
    return each.where && (verdict.ranks.empty() || &each == &from[static_cast<size_t>(odd_ranks.front())]);
  });
  if (named != from.end()) verdict.cause.place = named->where;
  if (options.size() > 1) verdict.cause.text = options.front().name + ": " + verdict.cause.text;
  verdict.advice =
      one_is_scaled ? "step by the scaler on every rank, scaler.step(optimizer), or on none"
      : verdict.cause.op.find(kLossScaler) != std::string::npos
          ? "call update() on every rank equally often, and load the scaler's state on all"
          : "set the same options on every rank, and step schedulers equally often, by a value that is the same there";
  return verdict;
}

// Whether the groups of all ranks have the same options, possibly in a different order of groups.
bool are_options_in_other_order(std::span<const StepOnRank> steps) {
  std::vector<std::vector<std::string>> sorted;
  for (const StepOnRank& step : steps) {
    sorted.push_back(options_of_groups(step.options));
    std::ranges::sort(sorted.back());
  }
  return std::ranges::all_of(sorted, [&](const auto& groups) { return groups == sorted.front(); });
}

Verdict groups_in_other_order(std::span<const StepOnRank> steps, const std::vector<int>& odd,
                              const std::string& optimizer) {
  Verdict verdict = new_verdict(CauseKind::OptionsDiffer, steps, odd);
  verdict.cause.op = "order of the parameter groups";
  verdict.what = fmt::format("Parameter groups of {} in another order", optimizer);
  verdict.cause.text =
      each_rank(steps, [](const StepOnRank& step) { return "has " + first_of(split(step.options, "\n"), 8, "; "); });
  verdict.advice =
      "make the groups in the same order on every rank: schedules and checkpoints know them by their numbers";
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
  verdict.what = "Would move on some ranks only";
  verdict.cause.text =
      fmt::format("{} holds it on {} and not on {}", optimizer, ranks_in_words(apart.front().ready_ranks),
                  ranks_in_words(apart.front().missing_ranks));
  verdict.parameters = std::move(apart);
  verdict.advice = "give the optimizer the same parameters on every rank, by add_param_group() in the same step";
  return verdict;
}

// For ranks with the same options: returns a verdict if the options of some parameter's group differ between ranks.
std::optional<Verdict> different_groups(std::span<const StepOnRank> steps, const Groups& groups,
                                        const std::string& optimizer, std::span<const NamedParameter> parameters) {
  std::vector<std::vector<std::string>> options;
  for (const StepOnRank& step : steps)
    options.push_back(options_of_groups(step.options));
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
      verdict.what = fmt::format("In groups of {} with other options", optimizer);
      verdict.cause.text = each_rank(steps, [&](const StepOnRank& step) {
        const auto rank = static_cast<size_t>(&step - steps.data());
        return fmt::format("has it in group {},{}", on_ranks[rank], by_rank[rank]);
      });
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
  verdict.what = "Would move on some ranks only";
  verdict.cause.text = "a parameter has a gradient on some ranks only";
  if (!verdict.parameters.empty()) {
    const ParameterVerdict& first = verdict.parameters.front();
    verdict.cause.text = fmt::format("it has a gradient on {} and none on {}", ranks_in_words(first.ready_ranks),
                                     ranks_in_words(first.missing_ranks));
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
                                      : different_options(steps, ranks));
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
  verdict.what = "Optimizer state differs between the ranks";
  verdict.cause.text =
      fmt::format("{} changed the state of {} ({})", first_of(changes, 4, "; "), optimizer, apart.what);
  for (const NamedParameter& parameter : apart.parameters)
    verdict.parameters.push_back(about(parameter, {}, ranks));
  verdict.advice = "write the same on every rank; what state_dict() gives is the optimizer's own memory: clone() it";
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
  verdict.what = "Optimizer state differs between the ranks";
  verdict.cause.text =
      ranks.size() == steps.size()
          ? fmt::format(
                "the ranks loaded different states into {} ({}): {}", optimizer, apart.what,
                each_rank(steps, [](const StepOnRank& step) { return "at " + to_string(step.state_loaded_at); }))
          : fmt::format("{} loaded another state into {} ({}) at {}", ranks_in_words(ranks), optimizer, apart.what,
                        to_string(verdict.cause.place));
  verdict.advice = "load the optimizer's state on every rank, from one file";
  return verdict;
}

}  // namespace brigade::dist
