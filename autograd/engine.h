// The engine behind backward().
//
// 1. Gather: walk the graph from the roots (an explicit stack, no recursion), collect the nodes, and
//    note for each leaf the lowest sequence number among the nodes that feed it. Sort the nodes by
//    descending number. Now the plan is known: which nodes run, in which order, and which leaves
//    will receive a gradient.
// 2. Run each node: its output gradients are in a buffer; its input gradients are added to the
//    buffers of earlier nodes or of leaves. When the lowest node that feeds a leaf has run, the
//    leaf's gradient is complete: hooks, accumulation, grad-ready.
// 3. Finish: listeners, clean-up.
#pragma once

#include <brigade/autograd/backward.h>
#include <brigade/autograd/gradient_scale.h>
#include <brigade/autograd/listener.h>
#include <brigade/autograd/node.h>

#include <vector>

namespace brigade::autograd {

class Engine {
 public:
  Engine(std::span<const Tensor> roots, std::span<const Tensor> gradients, const GraphUse& use, SourceLocation where);
  ~Engine();

  // Call once per object.
  void run();
  // The same, but the gradients of `inputs` (leaves or results) are returned instead of accumulated: no leaf is written
  // to, and listeners are not notified. Undefined for an input that the roots do not depend on.
  // `ends`: stop at these tensors; do not differentiate through one to reach another.
  std::vector<Tensor> run_captured(std::span<const Tensor> inputs, bool ends = false);

  // A number for hook handles and tasks, never 0.
  static uint64_t next_number() noexcept;

 private:
  // A leaf that will receive a gradient.
  struct PlannedLeaf {
    AutogradMeta* meta;
    uint64_t last_sequence;  // the node after which it is complete; above all nodes for a root that is a leaf
    Tensor buffer;           // sum of contributions so far (unused when they go to the target directly)
    bool received = false;   // a gradient arrived
    uint64_t outer_task;     // the marks that an enclosing backward set on the leaf
    uint32_t outer_index;
    int32_t capture = -1;  // which of the inputs it is, in a captured run
  };
  // A node that will run, with the marks that an enclosing backward set on it.
  struct PlannedNode {
    Node* node;
    uint32_t first_buffer;
    uint64_t outer_task;
    uint32_t outer_index;
    bool only_read = false;  // only its gradient is requested; its backward does not run
  };
  friend class BackwardContext;
  friend class Plan;

  void check_roots();
  void notify_refused() const noexcept;
  void check_not_freed(const Node& node) const;
  void gather();
  // Called before gather(), which then stops at these results.
  void end_at(std::span<const Tensor> results);
  void plan_node(Node& node);
  void visit(const Edge& edge, uint64_t from_sequence);
  // Assigns each node its position, and buffers for the gradients of its outputs.
  void number_nodes();
  void seed();
  void run_node(PlannedNode& planned);
  void run_nodes();
  void deliver(const Node& from, uint32_t input, Tensor gradient);
  void complete_leaf(uint32_t index);
  // Runs the hooks of a leaf over its gradient; each may replace it.
  void call_leaf_hooks(uint32_t index);
  void add_to(Tensor& buffer, Tensor gradient);
  void unmark() noexcept;
  void mark_captured(std::span<const Tensor> inputs);
  void prune();
  void note_retained();
  static void note_used_again(const Node& node) noexcept;
  // Computes the label of each leaf's gradient scale, while a scaler lives.
  void label_scales(bool is_nested);
  void note_scale(uint32_t leaf);
  void look_for_non_finite(const Node& node, const Tensor* grads);
  void look_at_unbounded(const Node& node, const Tensor* grads) const;
  void look_for_nan(const Node& node, const Tensor* grads);
  // Called when a node returned nothing for an input.
  void note_stopped(const Node& node, uint32_t input) const;
  // The gradient that the running node computed for an input.
  Tensor result_of(const Node& node, uint32_t input) const;

  std::span<const Tensor> roots_;
  std::vector<Tensor> gradients_;
  bool retain_graph_;
  bool create_graph_;
  bool detects_anomaly_;
  bool is_diagnosed_ = false;  // a tape is kept
  SourceLocation where_;
  uint64_t task_;
  std::span<const Tensor> given_;  // gradients of the roots, before missing ones were set to 1
  std::vector<PlannedNode> nodes_;
  std::vector<Node*> stack_;
  std::vector<Tensor> leaves_;
  std::vector<PlannedLeaf> planned_leaves_;
  std::vector<Tensor> buffers_;
  std::vector<Tensor> results_;
  std::vector<Listener*> listeners_;
  std::vector<Edge> root_edges_;
  std::vector<ScaleLabel> scale_labels_;  // of the leaves; a single one if all are equal
  // For a captured run: the requested gradients, and those among them that are node outputs.
  struct CapturedOutput {
    const Node* node;
    uint32_t output;
    size_t input;
  };
  std::vector<Listener*> non_finite_listeners_;  // until one operation was found
  bool capturing_ = false;
  std::vector<Tensor> captured_;
  std::vector<CapturedOutput> captured_outputs_;
};

}  // namespace brigade::autograd
