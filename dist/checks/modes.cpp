// Reads the autocast state of the thread, and the modes of layers whose results depend on them, before each forward.
#include <brigade/dist/checks/modes.h>

#include <brigade/amp/autocast.h>
#include <brigade/core/fnv.h>
#include <brigade/nn/activation.h>
#include <brigade/nn/batch_norm.h>
#include <brigade/nn/multihead_attention.h>

#include <algorithm>
#include <utility>

namespace brigade::dist {

// --- Reads the autocast state of the thread before each forward.

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

// --- Records the modes of the layers whose results depend on train() and eval().

namespace {

bool depends_on_mode(const nn::Module& layer) {
  if (const auto* const norm = dynamic_cast<const nn::BatchNormImpl*>(&layer)) return norm->options.track_running_stats;
  if (const auto* const dropout = dynamic_cast<const nn::DropoutImpl*>(&layer)) return dropout->p > 0;
  const auto* const attention = dynamic_cast<const nn::MultiheadAttentionImpl*>(&layer);
  return attention && attention->options.dropout > 0;
}

}  // namespace

LayerModes::LayerModes(const nn::Module& module) { collect(module); }

void LayerModes::collect(const nn::Module& module) {
  for (const auto& [name, child] : module.named_children()) {
    if (depends_on_mode(*child)) layers_.push_back(child);
    collect(*child);
  }
}

void LayerModes::look(uint64_t backwards) {
  if (layers_.empty()) return;
  Trains trains;
  for (const auto& layer : layers_)
    trains.push_back(layer->is_training());
  seen_.see(std::move(trains), backwards);
}

uint64_t LayerModes::digest(uint64_t backwards) const noexcept {
  uint64_t digest = are_known(backwards) ? kFnvStart : 0;
  for (const uint8_t trains : seen(backwards))
    digest = fnv_step(digest, trains + 1U);
  return digest;
}

std::vector<std::string> LayerModes::evaluating(uint64_t backwards) const {
  std::vector<std::string> paths;
  const Trains& trains = seen(backwards);
  for (size_t i = 0; i < trains.size(); ++i) {
    if (!trains[i]) paths.push_back(layers_[i]->path());
  }
  return paths;
}

}  // namespace brigade::dist
