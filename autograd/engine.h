// The engine behind backward().
//
// 1. Gather: walk the graph from the roots (an explicit stack, no recursion), collect the nodes, and note for each leaf
// the lowest
//    sequence number among the nodes that feed it. Sort the nodes by descending number. Now the plan is known: which
//    nodes run, in which order, and which leaves will receive a gradient.
// 2. Run each node: its output gradients lie in a buffer; its input gradients are added to the buffers of earlier nodes
// or of leaves.
//    When the lowest node that feeds a leaf has run, the leaf's gradient is complete: hooks, accumulation, grad-ready.
// 3. Finish: listeners, clean-up.
#pragma once

#include <brigade/autograd/listener.h>
#include <brigade/autograd/node.h>

#include <vector>

namespace brigade::autograd {

class Engine {
 public:
  Engine(std::span<const Tensor> roots, std::span<const Tensor> gradients, bool retain_graph, SourceLocation where);
  ~Engine();

  // Once per object.
  void run();

  // A number for hook handles and tasks, never 0.
  static uint64_t next_number() noexcept;

 private:
  // A leaf that will receive a gradient.
  struct PlannedLeaf {
    AutogradMeta* meta;
    uint64_t last_sequence;  // the node after which it is complete; above all nodes for a root that is a leaf
    Tensor buffer;           // sum of contributions so far (unused when they go to the target directly)
    bool received = false;   // a gradient arrived
    uint64_t outer_task;     // what an enclosing backward had noted on the leaf
    uint32_t outer_index;
  };
  // A node that will run; what an enclosing backward had noted on it.
  struct PlannedNode {
    Node* node;
    uint32_t first_buffer;
    uint64_t outer_task;
    uint32_t outer_index;
  };
  friend class BackwardContext;

  void check_roots();
  void gather();
  void visit(const Edge& edge, uint64_t from_sequence);
  void seed();
  void run_node(PlannedNode& planned);
  void deliver(const Node& from, uint32_t input, Tensor gradient);
  void complete_leaf(uint32_t index);
  void unmark() noexcept;

  std::span<const Tensor> roots_;
  std::vector<Tensor> gradients_;
  bool retain_graph_;
  SourceLocation where_;
  uint64_t task_;
  std::vector<PlannedNode> nodes_;
  std::vector<Node*> stack_;
  std::vector<Tensor> leaves_;
  std::vector<PlannedLeaf> planned_leaves_;
  std::vector<Tensor> buffers_;
  std::vector<Tensor> results_;
  std::vector<Listener*> listeners_;
  std::vector<NodePtr> root_nodes_;
};

}  // namespace brigade::autograd
