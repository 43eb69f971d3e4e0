// Propagates scale labels down a graph, before the first kernel of a backward runs, and stamps each gradient with its
// own.
#include <brigade/autograd/engine_observer.h>
#include <brigade/autograd/gathered_graph.h>
#include <brigade/autograd/gradient_scale.h>
#include <brigade/autograd/meta.h>

#include <algorithm>

namespace brigade::autograd {
namespace {

class ScaleLabels final : public EngineObserver {
 public:
  explicit ScaleLabels(const ObservedRun& run) : given_(run.given), is_nested_(run.is_nested), where_(run.where) {}

  void on_gathered(const GatheredGraph& graph) override {
    const size_t root_count = graph.root_edges().size();
    if (root_count == 0) return;
    std::vector<ScaleLabel> roots(root_count);
    for (size_t i = 0; i < root_count; ++i) {
      // A given gradient may carry any scale, such as that of another backward when a model is split in two. So may the
      // gradients of a nested backward.
      const bool untold = (i < given_.size() && given_[i].defined()) || is_nested_;
      roots[i] = {.known = untold ? ScaleKnown::Unknown : ScaleKnown::One, .first = {.backward_at = where_}};
    }
    const auto nodes = graph.nodes();
    const bool has_marks =
        std::any_of(nodes.begin(), nodes.end(), [](const PlannedNode& each) { return each.node->scale_mark(); });
    const bool alike = std::all_of(roots.begin(), roots.end(),
                                   [&](const ScaleLabel& label) { return label.known == roots.front().known; });
    if (!has_marks && alike) {
      labels_.assign(1, roots.front());
    } else {
      hand_down(graph, roots);
    }
  }

  void on_accumulated(const Tensor& leaf, uint32_t position) override {
    if (labels_.empty()) return;
    AutogradMeta& leaf_meta = *meta(leaf);
    if (!leaf_meta.grad.defined()) return;  // frozen since the operation was recorded
    ScaleLabel label = labels_[labels_.size() == 1 ? 0 : position];
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
      note_unregistered_scaled_leaf(leaf.id());
  }

 private:
  void hand_down(const GatheredGraph& graph, std::span<const ScaleLabel> roots) {
    std::vector<ScaleLabel> of_nodes(graph.nodes().size());
    labels_.assign(std::max<size_t>(graph.leaves().size(), 2), {});
    const auto join = [&](const Edge& edge, const ScaleLabel& label) {
      if (edge.node) {
        of_nodes[graph.position(*edge.node)].join(label);
      } else if (edge.leaf) {
        labels_[graph.position(*edge.leaf)].join(label);
      }
    };
    for (size_t i = 0; i < roots.size(); ++i)
      join(graph.root_edges()[i], roots[i]);
    // Newest first: a node's own label is complete when its turn comes.
    for (const PlannedNode& planned : graph.nodes()) {
      const ScaleLabel behind = of_nodes[graph.position(*planned.node)].through(planned.node->scale_mark());
      for (const Edge& edge : planned.node->edges)
        join(edge, behind);
    }
  }

  std::span<const Tensor> given_;
  bool is_nested_;
  SourceLocation where_;
  std::vector<ScaleLabel> labels_;  // of the leaves; a single one if all are equal
};

}  // namespace

std::unique_ptr<EngineObserver> make_scale_labels(const ObservedRun& run) {
  return !run.is_captured && has_scalers() ? std::make_unique<ScaleLabels>(run) : nullptr;
}

}  // namespace brigade::autograd
