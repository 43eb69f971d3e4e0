// Implements the step counts of StepCheck: how many steps the optimizers have taken, in a join and since.
#include <brigade/dist/checks/step.h>

#include <brigade/dist/diagnosis/wire.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/optim/optimizer.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace brigade::dist {

void StepCheck::resume_after_join() noexcept {
  is_paused_ = false;
  for (auto& [optimizer, steps] : steps_) {
    steps.in_join = steps.latest;
    steps.loaded_since = false;
  }
}

namespace {

// "Adam 0 1 2": a key that the same optimizer has on all ranks; "" if it moves no reduced parameter.
std::string key_of(const optim::Optimizer& optimizer, const Reducer& reducer) {
  std::string positions;
  for (const Tensor& parameter : optimizer.parameters()) {
    if (const int64_t position = reducer.find(parameter); position >= 0) positions += fmt::format(" {}", position);
  }
  return positions.empty() ? "" : optimizer.name() + positions;
}

}  // namespace

void StepCheck::compare_steps_of_join(SourceLocation where) {
  using Counts = std::map<std::string, std::vector<uint64_t>>;  // step counts of the optimizers with this key
  Counts own;
  std::map<std::string, const optim::Optimizer*> ours;
  for (const optim::Optimizer* optimizer : optim::optimizers_of_this_thread()) {
    const std::string key = key_of(*optimizer, reducer_);
    if (key.empty()) continue;
    own[key].push_back(optimizer->steps_taken());
    ours[key] = optimizer;
  }
  auto of_ranks = decoded_of_all<Counts>(
      group_.all_gather_text(to_text(own), Topic{Phase::Join, Name("join: steps of the optimizers")}, where));
  for (const auto& [key, optimizer] : ours) {
    std::vector<uint64_t> counts;
    for (Counts& of_rank : of_ranks) {
      if (const std::vector<uint64_t>& found = of_rank[key]; found.size() == 1) counts.push_back(found.front());
    }
    const bool alike = std::ranges::all_of(counts, [&](uint64_t count) { return count == counts.front(); });
    if (alike || counts.size() != of_ranks.size()) {
      uneven_.erase(optimizer->serial());  // the counts cannot be compared
    } else {
      uneven_[optimizer->serial()] = std::move(counts);
    }
  }
}

// All ranks with data come here at their next step, and hold the same counts.
void StepCheck::refuse_after_uneven_join(const autograd::Update& update) {
  if (update.state_loaded_at.line() != 0) uneven_.erase(update.serial);  // the differing state was overwritten
  const auto found = uneven_.find(update.serial);
  if (found == uneven_.end() || !update.keeps_state || !update.moves) return;
  const std::vector<uint64_t>& of_ranks = found->second;
  std::vector<StepOnRank> steps(of_ranks.size());
  for (size_t r = 0; r < steps.size(); ++r) {
    steps[r].name = fmt::format("step {} of {}", of_ranks[r] + 1, update.name);
    steps[r].where = update.where;
    steps[r].in_join = of_ranks[r];
    steps[r].since_join = 1;
  }
  std::vector<Verdict> verdicts = optimizers_differ(steps, update.name, {});
  for (Verdict& verdict : verdicts)
    verdict.iteration = reducer_.past().rounds;
  raise(update, std::move(verdicts));
}

void StepCheck::count(const autograd::Update& update) {
  Steps& steps = steps_[update.optimizer];
  if (update.number <= steps.in_join) steps = {};  // a new optimizer at the address of a destroyed one
  steps.latest = update.number;
  if (update.state_loaded_at.line() != 0) steps.loaded_since = true;
}

StepCheck::Count StepCheck::count_of(const autograd::Update& update) const {
  const auto known = steps_.find(update.optimizer);
  const uint64_t in_join = known == steps_.end() ? 0 : known->second.in_join;
  // Steps in a join do not matter once the ranks have loaded a state.
  const bool is_forgotten = !update.keeps_state || (known != steps_.end() && known->second.loaded_since);
  return {in_join, update.number - in_join, in_join == 0 || !is_forgotten};
}

}  // namespace brigade::dist
