// Finds writes to parameters, buffers and gradients since the optimizer's latest step, other than its own and the
// reducer's, and steps that the program takes back by such writes.
#include <brigade/dist/checks/step.h>

#include <brigade/autograd/meta.h>
#include <brigade/autograd/write_log.h>
#include <brigade/dist/checks/hand_updates.h>
#include <brigade/dist/checks/replaced_buffers.h>
#include <brigade/dist/reducer/reducer.h>
#include <brigade/optim/optimizer.h>

#include <fmt/format.h>

#include <algorithm>

namespace brigade::dist {

void StepCheck::Steps::compared(const autograd::Update& update, bool moves) {
  writes_seen = autograd::writes_by_hand();
  versions.clear();
  for (const Tensor& parameter : update.parameters)
    versions.push_back(parameter.version());
  has_moved = moves;
}

bool StepCheck::Steps::may_be_written(size_t position, const Tensor& parameter) const {
  return position >= versions.size() || parameter.version() - versions[position] != (has_moved ? 1 : 0);
}

void StepCheck::InnerSteps::end(const autograd::Update& update, uint64_t reduced) {
  if (is_due && (update.optimizer == optimizer || update.optimizer == outer)) count = 0;
  if (!is_now()) return;
  ++count;
  rounds = reduced;
  optimizer = update.optimizer;
  latest_at = update.where;
  found = now;
}

std::vector<Verdict> StepCheck::not_taken_back(std::span<const Verdict> verdicts) const {
  std::unordered_set<std::string> names;
  for (const Verdict& verdict : verdicts) {
    for (const ParameterVerdict& parameter : verdict.parameters)
      names.insert(parameter.name);
  }
  std::vector<Verdict> found = inner_.found;
  for (Verdict& verdict : found) {
    std::erase_if(verdict.parameters, [&](const ParameterVerdict& each) { return !names.contains(each.name); });
    verdict.cause.place = inner_.latest_at;
    verdict.cause.text =
        fmt::format("the step at {} moved them by this rank's own gradients, and they were not put back",
                    to_string(inner_.latest_at));
    verdict.advice = "put all of them back before the next step on averages";
  }
  std::erase_if(found, [](const Verdict& verdict) { return verdict.parameters.empty(); });
  return found;
}

bool StepCheck::is_inner(const autograd::Update& update, std::span<const Verdict> found) {
  constexpr uint64_t kMost = 256;  // without a reduced backward: nothing shows whether they were taken back
  const auto is_local = [](const Verdict& each) { return each.cause.kind == CauseKind::NotReduced; };
  if (found.empty() || reducer_.reducing_at().line() != 0 || !std::ranges::all_of(found, is_local)) return false;
  const bool goes_on = inner_.count > 0 && !inner_.is_due;
  if (goes_on && (update.optimizer != inner_.optimizer || inner_.count == kMost)) return false;
  std::unordered_set<const TensorImpl*> moved;
  for (const Tensor& parameter : update.parameters) {
    if (reducer_.find(parameter) < 0 || !parameter.grad().defined()) continue;
    moved.insert(parameter.impl());
    const std::optional<autograd::LastWrite> last = autograd::last_write(parameter);
    if (inner_.count == 0 && !(last && last->is_copied)) return false;
  }
  for (const optim::Optimizer* const each : optim::optimizers_of_this_thread()) {
    if (each == update.optimizer || moved.empty()) continue;
    size_t held = 0;
    for (const Tensor& parameter : each->parameters())
      held += moved.contains(parameter.impl());
    if (held == moved.size()) inner_.outer = each;
    if (held == moved.size()) return true;
  }
  return false;
}

std::vector<std::pair<size_t, std::vector<StepOnRank::Edit>>> StepCheck::written_by_hand(
    const autograd::Update& update) const {
  std::vector<std::pair<size_t, std::vector<StepOnRank::Edit>>> found;
  // Between two averages of local SGD the ranks hold different weights.
  if (!reducer_.past().backward.sent || (inner_.count > 0 && !inner_.is_due)) return found;
  const auto known = steps_.find(update.optimizer);
  const Steps none;
  const Steps& steps = known == steps_.end() ? none : known->second;
  const bool any_with_line = autograd::writes_by_hand() != steps.writes_seen;
  for (size_t i = 0; i < update.parameters.size(); ++i) {
    const Tensor& parameter = update.parameters[i];
    if (!any_with_line && !inner_.is_due && !steps.may_be_written(i, parameter)) continue;
    // A rank may write to a frozen parameter as it likes.
    const int64_t position = reducer_.find(parameter);
    if (!parameter.requires_grad() || position < 0) continue;
    const std::optional<autograd::LastWrite> last = autograd::last_write(parameter);
    const bool is_own_step = last && !last->by_hand && last->is_latest;
    if (!last || (is_own_step && !inner_.is_due)) continue;
    const std::string& name = reducer_.parameters()[static_cast<size_t>(position)].name;
    std::vector<StepOnRank::Edit>& writes = found.emplace_back(i, edits_by_hand(name, *last)).second;
    if (is_own_step) writes.push_back({name, last->what, last->where});
    if (writes.empty()) writes.push_back(StepOnRank::Edit::unseen(name));
  }
  return found;
}

std::vector<StepOnRank::Edit> StepCheck::state_written(const autograd::Update& update) const {
  const auto known = steps_.find(update.optimizer);
  const uint64_t seen = known == steps_.end() ? 0 : known->second.writes_seen;
  if (!update.state_is_shared || autograd::writes_by_hand() == seen || !reducer_.past().backward.sent) return {};
  std::vector<StepOnRank::Edit> found;
  for (const autograd::KeptState& kept : update.state()) {
    const int64_t position = reducer_.find(update.parameters[kept.position]);
    if (position < 0) continue;
    for (const Tensor& tensor : kept.tensors) {
      const std::optional<autograd::LastWrite> last = autograd::last_write(tensor);
      if (last && last->by_hand && last->number > seen)
        found.push_back({reducer_.parameters()[static_cast<size_t>(position)].name, last->what, last->where});
    }
  }
  return found;
}

std::vector<StepOnRank::Edit> StepCheck::buffers_replaced(const autograd::Update& update) const {
  const auto known = steps_.find(update.optimizer);
  const uint64_t seen = known == steps_.end() ? 0 : known->second.writes_seen;
  if (!options_.own_buffers || autograd::writes_by_hand() == seen || !reducer_.past().backward.sent) return {};
  return replaced_buffers(checked_.buffers(), seen);
}

std::vector<StepOnRank::Edit> StepCheck::buffers_updated(const autograd::Update& update) const {
  constexpr uint64_t kMost = 16;  // later steps are not worth the reading
  if (!options_.own_buffers) return {};
  const auto known = steps_.find(update.optimizer);
  const uint64_t seen = known == steps_.end() ? 0 : known->second.writes_seen;
  if (autograd::writes_by_hand() == seen || !reducer_.past().backward.sent || updates_compared_ >= kMost ||
      log_.advisories.has(kBuffersDrift))
    return {};
  return updated_buffers(checked_.buffers(), seen);
}

std::vector<autograd::Write> StepCheck::edits_of(uint32_t managed, const Tensor& grad) const {
  const uint64_t since = reducer_.accumulation().local(managed).writes_at_reduction;
  return autograd::writes_so_far() == since ? std::vector<autograd::Write>{} : autograd::writes_to(grad, since);
}

bool StepCheck::may_be_edited_unseen(uint32_t managed, const Tensor& grad) const {
  const LocalGradient& local = reducer_.accumulation().local(managed);
  const bool by_hand = autograd::meta(reducer_.parameters()[managed].tensor)->stamp.by_hand;  // in other memory
  if (by_hand || local.backwards > 0 || !options_.diagnosis) return false;
  const uint32_t writes = grad.version() - local.version_at_reduction;
  return writes != 0 && writes != autograd::writes_to_memory_of(grad, local.writes_at_reduction);
}

}  // namespace brigade::dist
