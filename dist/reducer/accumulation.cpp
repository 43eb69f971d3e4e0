// Bookkeeping of what is local to this rank.
#include <brigade/dist/reducer/accumulation.h>

#include <brigade/autograd/meta.h>
#include <brigade/autograd/write_log.h>

#include <algorithm>

namespace brigade::dist {

void Accumulation::hear(uint64_t number) {
  constexpr size_t kRemembered = 16;
  heard_.push_back(number);
  if (heard_.size() > kRemembered) heard_.erase(heard_.begin());
}

bool Accumulation::has_heard(uint64_t number) const noexcept {
  return std::find(heard_.begin(), heard_.end(), number) != heard_.end();
}

void Accumulation::add(uint32_t parameter, bool defined, const autograd::GradStamp& stamp) {
  if (!defined) return;
  used_[parameter] = 1;
  LocalGradient& local = local_[parameter];
  if (stamp.backwards <= 1) local.backwards = 0;  // cleared since
  if (local.backwards++ == 0) local.writes_at_accumulation = autograd::writes_so_far();
  local.where = stamp.last_backward_at;
}

void Accumulation::forget_all() noexcept { std::fill(used_.begin(), used_.end(), uint8_t{0}); }

uint32_t Accumulation::local_backwards() const noexcept {
  uint32_t most = 0;
  for (const LocalGradient& local : local_)
    most = std::max(most, local.backwards);
  return most;
}

void Accumulation::all_reduced(std::span<const NamedParameter> parameters) {
  forget_all();
  for (LocalGradient& local : local_)
    local.backwards = 0;
  pass_over_writes(parameters);
}

void Accumulation::reduced(uint32_t parameter, const Tensor& leaf) noexcept {
  used_[parameter] = 0;
  LocalGradient& local = local_[parameter];
  local.backwards = 0;
  local.writes_at_reduction = autograd::writes_so_far();
  const autograd::AutogradMeta* const known = autograd::meta(leaf);
  if (known && known->grad.defined()) local.version_at_reduction = known->grad.version();
}

bool Accumulation::has_gathered(std::span<const NamedParameter> parameters) const {
  for (size_t i = 0; i < parameters.size(); ++i) {
    const autograd::AutogradMeta* known = autograd::meta(parameters[i].tensor);
    if (used_[i] && known && known->grad.defined()) return true;
  }
  return false;
}

void Accumulation::pass_over_writes(std::span<const NamedParameter> parameters) {
  const uint64_t writes = autograd::writes_so_far();
  for (size_t i = 0; i < local_.size(); ++i) {
    local_[i].writes_at_reduction = writes;
    const autograd::AutogradMeta* const known = autograd::meta(parameters[i].tensor);
    if (known && known->grad.defined()) local_[i].version_at_reduction = known->grad.version();
  }
}

}  // namespace brigade::dist
