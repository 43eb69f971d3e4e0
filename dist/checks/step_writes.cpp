// Finds writes to parameters, buffers and gradients since the optimizer's latest step, other than its own and the
// reducer's.
#include <brigade/dist/checks/step.h>

#include <brigade/autograd/meta.h>
#include <brigade/autograd/write_log.h>
#include <brigade/dist/checks/replaced_buffers.h>
#include <brigade/dist/reducer/reducer.h>

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

std::vector<std::pair<size_t, StepOnRank::Edit>> StepCheck::written_by_hand(const autograd::Update& update) const {
  std::vector<std::pair<size_t, StepOnRank::Edit>> found;
  // Between two averages of local SGD the ranks hold different weights.
  if (!reducer_.past().backward.sent) return found;
  const auto known = steps_.find(update.optimizer);
  const Steps none;
  const Steps& steps = known == steps_.end() ? none : known->second;
  const bool any_with_line = autograd::writes_by_hand() != steps.writes_seen;
  for (size_t i = 0; i < update.parameters.size(); ++i) {
    const Tensor& parameter = update.parameters[i];
    if (!any_with_line && !steps.may_be_written(i, parameter)) continue;
    // A rank may write to a frozen parameter as it likes.
    const int64_t position = reducer_.find(parameter);
    if (!parameter.requires_grad() || position < 0) continue;
    const std::optional<autograd::LastWrite> last = autograd::last_write(parameter);
    if (!last || (!last->by_hand && last->is_latest)) continue;
    const std::string& name = reducer_.parameters()[static_cast<size_t>(position)].name;
    found.emplace_back(
        i, last->by_hand ? StepOnRank::Edit{name, last->what, last->where} : StepOnRank::Edit::unseen(name));
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
