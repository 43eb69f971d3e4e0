// Walks from the roots of a backward to the leaves, marks what it finds, and sorts the nodes.
#include <brigade/autograd/gathered_graph.h>

#include <brigade/autograd/detail/thread_state.h>
#include <brigade/autograd/listener.h>

#include <algorithm>
#include <utility>

namespace brigade::autograd {
namespace {
// The backwards running on this thread, innermost last.
thread_local std::vector<uint64_t> running_tasks;
}  // namespace

bool Plan::holds_recorded(uint64_t from, uint64_t to) const noexcept {
  // The nodes are sorted newest first.
  const std::span nodes = graph_->nodes();
  const auto newest = std::partition_point(nodes.begin(), nodes.end(),
                                           [&](const PlannedNode& each) { return each.node->sequence >= to; });
  return std::any_of(newest, nodes.end(),
                     [&](const PlannedNode& each) { return detail::is_recorded_since(each.node->sequence, from); });
}

GatheredGraph::GatheredGraph(uint64_t task, SourceLocation where)
    : task_(task), where_(where), is_outermost_(running_tasks.empty()) {
  running_tasks.push_back(task);
}

GatheredGraph::~GatheredGraph() {
  unmark();
  running_tasks.pop_back();
}

void GatheredGraph::restore(const PlannedNode& planned) noexcept {
  planned.node->task_ = planned.outer_task;
  planned.node->task_index_ = planned.outer_index;
}

void GatheredGraph::unmark() noexcept {
  for (const PlannedNode& planned : nodes_)
    restore(planned);
  for (const PlannedLeaf& planned : planned_leaves_) {
    planned.meta->task = planned.outer_task;
    planned.meta->task_index = planned.outer_index;
  }
  nodes_.clear();
  planned_leaves_.clear();
}

void GatheredGraph::check_not_freed(const Node& node) const {
  if (!node.is_freed()) return;
  throw AutogradError(
      where_,
      "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
      "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
      "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
      "saved tensors after calling backward. The operation is '{}' recorded at {}, freed by the backward at {}; this "
      "backward is at {}",
      node.op, to_string(node.where), to_string(node.freed_by()), to_string(where_));
}

void GatheredGraph::plan_node(Node& node) {
  if (node.task_ != 0 && std::find(running_tasks.begin(), running_tasks.end(), node.task_) == running_tasks.end()) {
    throw AutogradError(where_,
                        "backward over one graph from two threads at once: {} recorded at {} is part of a backward "
                        "on another thread",
                        node.name(), to_string(node.where));
  }
  nodes_.push_back({&node, 0, node.task_, node.task_index_, false});
  node.task_ = task_;
}

void GatheredGraph::visit(const Edge& edge, uint64_t from_sequence, bool refuses_freed,
                          const EngineObservers& observers) {
  if (Node* node = edge.node.get()) {
    if (holds(*node)) return;
    if (refuses_freed) check_not_freed(*node);
    for (const auto& observer : observers)
      observer->on_found(*node);
    plan_node(*node);
    stack_.push_back(node);
    return;
  }
  Tensor leaf(edge.leaf);
  AutogradMeta& leaf_meta = ensure_meta(leaf);
  if (leaf_meta.task != task_) {
    planned_leaves_.push_back({&leaf_meta, from_sequence, Tensor(), false, leaf_meta.task, leaf_meta.task_index});
    leaf_meta.task = task_;
    leaf_meta.task_index = static_cast<uint32_t>(leaves_.size());
    leaves_.push_back(std::move(leaf));
  } else {
    uint64_t& last = planned_leaves_[leaf_meta.task_index].last_sequence;
    last = std::min(last, from_sequence);
  }
}

void GatheredGraph::gather(std::span<const Tensor> roots, bool refuses_freed, const EngineObservers& observers) {
  for (const Tensor& root : roots) {
    root_edges_.push_back(gradient_edge(root));
    visit(root_edges_.back(), kBeforeAllNodes, refuses_freed, observers);
  }
  while (!stack_.empty()) {
    Node* node = stack_.back();
    stack_.pop_back();
    for (const Edge& edge : node->edges) {
      if (edge.defined()) visit(edge, node->sequence, refuses_freed, observers);
    }
  }
  const auto newest_first = [](const PlannedNode& a, const PlannedNode& b) {
    return a.node->sequence > b.node->sequence;
  };
  // A chain is already sorted.
  if (!std::is_sorted(nodes_.begin(), nodes_.end(), newest_first)) {
    std::sort(nodes_.begin(), nodes_.end(), newest_first);
  }
  number_nodes();
}

void GatheredGraph::number_nodes() noexcept {
  buffers_ = 0;
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    nodes_[i].node->task_index_ = i;
    nodes_[i].first_buffer = buffers_;
    buffers_ += nodes_[i].node->outputs.size();
  }
}

}  // namespace brigade::autograd
