// Propagates scale labels down a graph, before the first kernel of a backward runs.
#include <brigade/autograd/engine.h>
#include <brigade/autograd/gradient_scale.h>
#include <brigade/autograd/meta.h>

#include <algorithm>

namespace brigade::autograd {

void Engine::label_scales(bool is_nested) {
  std::vector<ScaleLabel> roots(roots_.size());
  for (size_t i = 0; i < roots_.size(); ++i) {
    // A given gradient may carry any scale, such as that of another backward when a model is split in two. So may the
    // gradients of a nested backward.
    const bool untold = (i < given_.size() && given_[i].defined()) || is_nested;
    roots[i] = {.known = untold ? ScaleKnown::Unknown : ScaleKnown::One, .first = {.backward_at = where_}};
  }
  const bool has_marks =
      std::any_of(nodes_.begin(), nodes_.end(), [](const PlannedNode& each) { return each.node->scale_mark(); });
  const bool alike = std::all_of(roots.begin(), roots.end(),
                                 [&](const ScaleLabel& label) { return label.known == roots.front().known; });
  if (!has_marks && alike) {
    scale_labels_.assign(1, roots.front());
    return;
  }
  std::vector<ScaleLabel> labels(nodes_.size());
  scale_labels_.assign(std::max<size_t>(planned_leaves_.size(), 2), {});
  const auto hand_down = [&](const Edge& edge, const ScaleLabel& label) {
    if (edge.node) {
      labels[edge.node->task_index_].join(label);
    } else if (edge.leaf) {
      scale_labels_[static_cast<AutogradMeta*>(edge.leaf->autograd.get())->task_index].join(label);
    }
  };
  for (size_t i = 0; i < root_edges_.size(); ++i)
    hand_down(root_edges_[i], roots[i]);
  // Newest first: a node's own label is complete when its turn comes.
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const ScaleLabel behind = labels[i].through(nodes_[i].node->scale_mark());
    for (const Edge& edge : nodes_[i].node->edges)
      hand_down(edge, behind);
  }
}

void Engine::note_scale(uint32_t leaf) {
  AutogradMeta& leaf_meta = *planned_leaves_[leaf].meta;
  if (!leaf_meta.grad.defined()) return;  // frozen since the operation was recorded
  ScaleLabel label = scale_labels_[scale_labels_.size() == 1 ? 0 : leaf];
  // A hook may have divided it by the scale.
  const auto has_changed = [](const AutogradMeta::Hook& hook) { return hook.has_changed; };
  if (std::any_of(leaf_meta.hooks.begin(), leaf_meta.hooks.end(), has_changed)) label.known = ScaleKnown::Unknown;
  leaf_meta.stamp.scale.on_backward(label, leaf_meta.grad);
  // A reducer writes to the gradients that it observes.
  const bool is_final = leaf_meta.observers.empty() && !leaf_meta.grad_target.defined();
  const bool can_look = leaf_meta.grad.device() == kCPU && leaf_meta.grad.is_contiguous();
  if (has_scalers_that_only_read() && label == ScaleKnown::One && label.first.scaler != 0 && is_final && can_look)
    leaf_meta.stamp.scale.look(leaf_meta.grad);
  if (label == ScaleKnown::One && label.first.scale != 1 && leaf_meta.registered_as.empty())
    note_unregistered_scaled_leaf(leaves_[leaf].id());
}

}  // namespace brigade::autograd
