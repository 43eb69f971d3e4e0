// A backward whose gradients are returned instead of accumulated, as autograd::grad() and checkpoints need it. Only what
// lies between the roots and the requested tensors runs.
#include <brigade/autograd/autocast_mode.h>
#include <brigade/autograd/engine.h>

#include <algorithm>
#include <utility>

namespace brigade::autograd {

void GatheredGraph::end_at(std::span<const Tensor> results) {
  for (const Tensor& result : results) {
    Node* node = gradient_edge(result).node.get();
    if (!node || holds(*node)) continue;
    plan_node(*node);
    nodes_.back().only_read = true;
  }
}

std::vector<CapturedOutput> GatheredGraph::limit_to(std::span<const Tensor> inputs) {
  std::vector<CapturedOutput> outputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (const Node* node = grad_fn(inputs[i])) {
      if (holds(*node)) outputs.push_back({node, inputs[i].impl()->output_nr, i});
    } else if (const AutogradMeta* known = meta(inputs[i]); known && known->task == task_) {
      planned_leaves_[known->task_index].capture = static_cast<int32_t>(i);
    }
  }
  const auto is_captured = [&](const Node& node) {
    return std::any_of(outputs.begin(), outputs.end(),
                       [&](const CapturedOutput& captured) { return captured.node == &node; });
  };
  // From the oldest to the newest: a node is needed when it is captured or feeds a needed one.
  for (size_t i = nodes_.size(); i-- > 0;) {
    PlannedNode& planned = nodes_[i];
    if (planned.only_read) continue;  // see end_at()
    bool needed = false;
    for (const Edge& edge : planned.node->edges) {
      if (edge.node) needed = needed || holds(*edge.node);
      if (edge.leaf) needed = needed || planned_leaf(*edge.leaf).capture >= 0;
    }
    planned.only_read = !needed;
    if (needed || is_captured(*planned.node)) continue;
    restore(planned);
    planned.node = nullptr;
  }
  std::erase_if(nodes_, [](const PlannedNode& planned) { return planned.node == nullptr; });
  for (const PlannedNode& planned : nodes_) {
    if (!planned.only_read) check_not_freed(*planned.node);
  }
  number_nodes();
  return outputs;
}

std::vector<Tensor> Engine::run_captured(std::span<const Tensor> inputs, bool ends) {
  const OutsideAutocast as_recorded;  // a gradient has the dtype of its tensor
  check_roots();
  capturing_ = true;
  attach_observers(observers_, {.is_captured = true, .where = where_});
  if (ends) graph_.end_at(inputs);
  graph_.gather(roots_, false, observers_);
  captured_outputs_ = graph_.limit_to(inputs);
  captured_.resize(inputs.size());
  run_nodes();
  graph_.unmark();
  if (failure_) std::rethrow_exception(failure_);
  // A leaf that is requested twice is captured once.
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (size_t j = 0; !captured_[i].defined() && j < inputs.size(); ++j) {
      if (inputs[j].is_same(inputs[i])) captured_[i] = captured_[j];
    }
  }
  return std::move(captured_);
}

}  // namespace brigade::autograd
