// The part of a graph that one backward goes through: its nodes, newest first, and the leaves that will receive a
// gradient.
//
// Gathering walks from the roots (an explicit stack, no recursion), and marks each node and leaf with the number of the
// backward and with its position here: later steps find both without a search. The marks that an enclosing backward set
// are kept, and restored at the end.
#pragma once

#include <brigade/autograd/engine_observer.h>
#include <brigade/autograd/meta.h>
#include <brigade/autograd/node.h>

#include <span>
#include <vector>

namespace brigade::autograd {

// A leaf that will receive a gradient.
struct PlannedLeaf {
  AutogradMeta* meta;
  uint64_t last_sequence;  // the lowest of the nodes that feed it: after that node it is complete
  Tensor buffer;           // sum of contributions so far (unused when they go to the target directly)
  bool received = false;   // a gradient arrived
  uint64_t outer_task;     // the marks that an enclosing backward set on the leaf
  uint32_t outer_index;
  int32_t capture = -1;  // which of the inputs it is, in a captured run
};
// A node that will run.
struct PlannedNode {
  Node* node;
  uint32_t first_buffer;  // of the gradients of its outputs
  uint64_t outer_task;    // the marks that an enclosing backward set on it
  uint32_t outer_index;
  bool only_read = false;  // only its gradient is requested; its backward does not run
};
// A requested gradient of a captured run that is the output of a node.
struct CapturedOutput {
  const Node* node;
  uint32_t output;
  size_t input;
};

class GatheredGraph {
 public:
  // PlannedLeaf::last_sequence of a root that is a leaf: above all nodes.
  static constexpr uint64_t kBeforeAllNodes = ~uint64_t{0};

  // `task`: the number of the backward, which runs on this thread until the object dies.
  GatheredGraph(uint64_t task, SourceLocation where);
  ~GatheredGraph();
  GatheredGraph(const GatheredGraph&) = delete;
  GatheredGraph& operator=(const GatheredGraph&) = delete;

  // Throws AutogradError if a node is part of a backward on another thread, or, with `refuses_freed`, if an earlier
  // backward has freed it. What was gathered until then remains.
  void gather(std::span<const Tensor> roots, bool refuses_freed, const EngineObservers& observers);
  // Called before gather(), which then stops at these results.
  void end_at(std::span<const Tensor> results);
  // Drops the nodes with none of `inputs` behind them, and marks the leaves among the inputs. Returns the others.
  std::vector<CapturedOutput> limit_to(std::span<const Tensor> inputs);
  // Takes the marks away: the nodes are free for another backward. leaves() stay.
  void unmark() noexcept;

  // No other backward runs on this thread.
  bool is_outermost() const noexcept { return is_outermost_; }
  // Newest first.
  std::span<PlannedNode> nodes() noexcept { return nodes_; }
  std::span<const PlannedNode> nodes() const noexcept { return nodes_; }
  std::span<PlannedLeaf> planned_leaves() noexcept { return planned_leaves_; }
  std::span<const Tensor> leaves() const noexcept { return leaves_; }
  // Where the gradients of the roots go. A hook could replace a root's history during the run.
  std::span<const Edge> root_edges() const noexcept { return root_edges_; }
  // The number of outputs of all nodes.
  uint32_t buffers() const noexcept { return buffers_; }

  bool holds(const Node& node) const noexcept { return node.task_ == task_; }
  // The position of a node that it holds in nodes(), and of a leaf in leaves().
  uint32_t position(const Node& node) const noexcept { return node.task_index_; }
  uint32_t position(const TensorImpl& leaf) const noexcept {
    return static_cast<AutogradMeta*>(leaf.autograd.get())->task_index;
  }
  // The buffer for the gradient of the output that an edge leads to.
  size_t buffer(const Edge& edge) const noexcept { return nodes_[edge.node->task_index_].first_buffer + edge.output; }
  PlannedLeaf& planned_leaf(const TensorImpl& leaf) noexcept { return planned_leaves_[position(leaf)]; }
  const PlannedLeaf& planned_leaf(const TensorImpl& leaf) const noexcept { return planned_leaves_[position(leaf)]; }

 private:
  void plan_node(Node& node);
  void visit(const Edge& edge, uint64_t from_sequence, bool refuses_freed, const EngineObservers& observers);
  void check_not_freed(const Node& node) const;
  // Assigns each node its position, and buffers for the gradients of its outputs.
  void number_nodes() noexcept;
  void restore(const PlannedNode& planned) noexcept;

  uint64_t task_;
  SourceLocation where_;
  bool is_outermost_;
  uint32_t buffers_ = 0;
  std::vector<PlannedNode> nodes_;
  std::vector<Node*> stack_;
  std::vector<Tensor> leaves_;
  std::vector<PlannedLeaf> planned_leaves_;
  std::vector<Edge> root_edges_;
};

}  // namespace brigade::autograd
