// Reads the autocast state of the thread before each forward.
#include <brigade/dist/checks/autocast_modes.h>

#include <brigade/amp/autocast.h>
#include <brigade/core/fnv.h>

#include <algorithm>
#include <utility>

namespace brigade::dist {

AutocastModes::AutocastModes(std::span<const NamedParameter> parameters) {
  for (const DeviceType device : {DeviceType::CPU, DeviceType::CUDA}) {
    const auto is_there = [device](const NamedParameter& each) { return each.tensor.device().type == device; };
    if (std::ranges::any_of(parameters, is_there)) devices_.push_back(device);
  }
}

void AutocastModes::look(uint64_t backwards) {
  AutocastOnRank now{.is_known = true};
  for (const DeviceType device : devices_) {
    if (!amp::is_autocast_enabled(device)) continue;
    now.dtypes += std::string(now.dtypes.empty() ? "" : ", ") + name(amp::autocast_dtype(device)) +
                  (device == DeviceType::CPU ? " on the CPU" : " on CUDA");
    if (!now.where) now.where = amp::autocast_where(device);
  }
  seen_.see(std::move(now), backwards);
}

uint64_t AutocastModes::digest(uint64_t backwards) const noexcept {
  const AutocastOnRank& now = seen_.latest(backwards);
  return now.is_known ? fnv(now.dtypes) : 0;
}

std::optional<Verdict> AutocastModes::compare(std::span<const StepOnRank> steps, uint64_t backwards) {
  constexpr int kInARow = 4;
  std::optional<Verdict> verdict = autocast_differs(steps);
  if (!verdict || backwards == differed_at_) return std::nullopt;
  uint64_t how = kFnvStart;
  for (const StepOnRank& step : steps)
    how = fnv_step(fnv(step.autocast.dtypes, how), 0);
  in_a_row_ = backwards == differed_at_ + 1 && how == how_ ? in_a_row_ + 1 : 1;
  differed_at_ = backwards;
  how_ = how;
  return in_a_row_ >= kInARow ? std::move(verdict) : std::nullopt;
}

}  // namespace brigade::dist
