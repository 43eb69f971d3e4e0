// Records the modes of the layers whose results depend on train() and eval().
#include <brigade/dist/checks/layer_modes.h>

#include <brigade/core/fnv.h>
#include <brigade/nn/batch_norm.h>
#include <brigade/nn/dropout.h>
#include <brigade/nn/multihead_attention.h>

#include <utility>

namespace brigade::dist {

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
