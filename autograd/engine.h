// The engine behind backward().
//
// 1. Gather (gathered_graph.h): walk the graph from the roots, sort the nodes by descending sequence number, and note
//    for each leaf the lowest number among the nodes that feed it. This is the plan: which nodes run, in which order,
//    and which leaves will receive a gradient.
// 2. Run each node: its input gradients are added to the buffers of earlier nodes or of leaves. When the lowest node
//    that feeds a leaf has run, the leaf's gradient is complete: hooks, accumulation, grad-ready.
// 3. Finish: listeners, clean-up. Observers (engine_observer.h) look at the nodes that run.
#pragma once

#include <brigade/autograd/backward.h>
#include <brigade/autograd/engine_observer.h>
#include <brigade/autograd/gathered_graph.h>
#include <brigade/autograd/listener.h>
#include <brigade/autograd/node.h>

#include <exception>
#include <vector>

namespace brigade::autograd {

class Engine {
 public:
  Engine(std::span<const Tensor> roots, std::span<const Tensor> gradients, const GraphUse& use, SourceLocation where);

  // Call once per object.
  void run();
  // The same, but the gradients of `inputs` (leaves or results) are returned instead of accumulated: no leaf is written
  // to, and listeners are not notified. Undefined for an input that the roots do not depend on.
  // `ends`: stop at these tensors; do not differentiate through one to reach another.
  std::vector<Tensor> run_captured(std::span<const Tensor> inputs, bool ends = false);

  // A number for hook handles and tasks, never 0.
  static uint64_t next_number() noexcept;

 private:
  friend class BackwardContext;

  void check_roots();
  // The listeners that observe a gathered leaf, after those of the thread.
  void add_observing_listeners();
  void seed();
  void run_nodes();
  void run_node(PlannedNode& planned);
  // Runs the hooks on the results of a node over their gradients; each may replace one.
  static void call_output_hooks(const Node& node, Tensor* grads);
  void deliver(const Node& from, uint32_t input, Tensor gradient);
  // Called when a node returned nothing for an input.
  void note_stopped(const Node& node, uint32_t input) const;
  void complete_leaf(uint32_t index);
  // Runs the hooks of a leaf over its gradient; each may replace it.
  void call_leaf_hooks(uint32_t index);
  void add_to(Tensor& buffer, Tensor gradient);

  std::span<const Tensor> roots_;
  std::span<const Tensor> given_;  // gradients of the roots
  std::vector<Tensor> gradients_;  // the same, with 1 in place of missing ones
  bool retain_graph_;
  bool create_graph_;
  SourceLocation where_;
  GatheredGraph graph_;
  std::vector<Tensor> buffers_;
  std::vector<Tensor> results_;
  std::vector<Listener*> listeners_;
  EngineObservers observers_;
  std::exception_ptr failure_;  // BackwardContext::fail_at_end
  // For a captured run: the requested gradients, and those among them that are node outputs.
  bool capturing_ = false;
  std::vector<Tensor> captured_;
  std::vector<CapturedOutput> captured_outputs_;
};

}  // namespace brigade::autograd
