// Numbers are saved and loaded by name; a name that only one side has is an error.
#include <brigade/optim/lr_scheduler/state.h>

#include <brigade/core/error.h>

#include <set>
#include <unordered_map>

namespace brigade::optim {

SchedulerVisitor SchedulerVisitor::under(const std::string& prefix) const {
  return SchedulerVisitor(
      [number = number_, prefix](const std::string& name, double& value) { number(prefix + name, value); });
}

namespace detail {

SchedulerState save_scheduler(const std::string& name, const VisitScheduler& visit) {
  SchedulerState state{name, {}};
  visit(SchedulerVisitor([&](const std::string& key, double& value) { state.numbers.emplace_back(key, value); }));
  return state;
}

void load_scheduler(const SchedulerState& state, const std::string& name, const VisitScheduler& visit,
                    std::source_location where) {
  if (!state.scheduler.empty() && state.scheduler != name)
    throw ValueError(where, "scheduler state: it was saved from {}, this is {}", state.scheduler, name);
  const std::unordered_map<std::string, double> saved(state.numbers.begin(), state.numbers.end());
  std::set<std::string> own;
  std::string missing, unknown;
  visit(SchedulerVisitor([&](const std::string& key, double&) {
    own.insert(key);
    if (!saved.contains(key)) missing += (missing.empty() ? "'" : ", '") + key + "'";
  }));
  for (const auto& [key, value] : state.numbers) {
    if (!own.contains(key)) unknown += (unknown.empty() ? "'" : ", '") + key + "'";
  }
  if (!missing.empty() || !unknown.empty()) {
    throw ValueError(where,
                     "scheduler state: it does not fit this {}{}{}. Was it saved from one with other "
                     "groups, milestones or schedulers?",
                     name, missing.empty() ? "" : "; missing: " + missing,
                     unknown.empty() ? "" : "; nothing here takes " + unknown);
  }
  visit(SchedulerVisitor([&](const std::string& key, double& value) { value = saved.at(key); }));
}

}  // namespace detail

}  // namespace brigade::optim
