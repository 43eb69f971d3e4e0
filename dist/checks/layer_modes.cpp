// Looks at the layers whose results depend on train() and eval().
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
  if (backwards != backwards_) std::swap(before_, latest_);
  backwards_ = backwards;
  latest_.train.resize(layers_.size());
  latest_.digest = kFnvStart;
  for (size_t i = 0; i < layers_.size(); ++i) {
    latest_.train[i] = layers_[i]->is_training();
    latest_.digest = fnv_step(latest_.digest, latest_.train[i] + 1U);
  }
}

std::vector<std::string> LayerModes::evaluating(uint64_t backwards) const {
  std::vector<std::string> paths;
  for (size_t i = 0; i < layers_.size() && are_known(backwards); ++i) {
    if (!seen(backwards).train[i]) paths.push_back(layers_[i]->path());
  }
  return paths;
}

}  // namespace brigade::dist
