// What diagnosis adds to a backward: observers of the engine. Each backward attaches those that something needs (a tape,
// a loss scaler, anomaly mode, a retained graph, a listener); without any, an event is one test of an empty list.
#pragma once

#include <brigade/core/tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace brigade::autograd {

class GatheredGraph;
class Listener;
class Node;

// An observer lives as long as one backward. It may throw: backward ends with that error.
class EngineObserver {
 public:
  EngineObserver() = default;
  virtual ~EngineObserver() = default;
  EngineObserver(const EngineObserver&) = delete;
  EngineObserver& operator=(const EngineObserver&) = delete;

  // The walk from the roots has found a node. It may still turn out that backward cannot run.
  virtual void on_found(const Node& /*node*/) {}
  // All nodes and leaves are known, and none has run. Not called in a captured run.
  virtual void on_gathered(const GatheredGraph& /*graph*/) {}
  // A node's backward has made `results` of the gradients of its outputs: one for each input, undefined where it handed
  // over nothing or wrote to a leaf's gradient directly.
  virtual void on_node_run(const Node& /*node*/, std::span<const Tensor> /*gradients*/,
                           std::span<const Tensor> /*results*/) {}
  // It returned nothing for this input, behind which the graph continues.
  virtual void on_stopped(const Node& /*node*/, uint32_t /*input*/) {}
  // A hook of a leaf is about to see its gradient.
  virtual void on_leaf_hook(const Tensor& /*gradient*/) {}
  // That hook, registered at `hook`, has written to the gradient or replaced it.
  virtual void on_changing_hook(const Tensor& /*leaf*/, SourceLocation /*hook*/, const Tensor& /*gradient*/) {}
  // A gradient was added to that of a leaf, which is at this position among the leaves.
  virtual void on_accumulated(const Tensor& /*leaf*/, uint32_t /*position*/) {}
  // All nodes of an outermost backward have run.
  virtual void on_ended(const GatheredGraph& /*graph*/) {}
};
using EngineObservers = std::vector<std::unique_ptr<EngineObserver>>;

// A backward that is about to gather.
struct ObservedRun {
  bool is_captured = false;  // returns its gradients instead of accumulating them
  bool is_nested = false;    // runs within another one
  bool retains_graph = false;
  std::span<const Tensor> given = {};  // the gradients of the roots, as the caller passed them
  SourceLocation where = {};
  uint64_t number = 0;  // Plan::number
};
// Attaches the observers that it needs.
void attach_observers(EngineObservers& observers, const ObservedRun& run);
// Attaches, ahead of all others, the search that a listener asks for (Listener::looks_for_non_finite).
void attach_search(EngineObservers& observers, std::span<Listener* const> listeners);

// --- The observers (autograd/observers); null if nothing needs them.
std::unique_ptr<EngineObserver> make_retained_graphs(const ObservedRun& run);
std::unique_ptr<EngineObserver> make_scale_labels(const ObservedRun& run);
std::unique_ptr<EngineObserver> make_stopped_gradients(const ObservedRun& run);
std::unique_ptr<EngineObserver> make_unbounded_derivatives(const ObservedRun& run);
std::unique_ptr<EngineObserver> make_anomaly_search(const ObservedRun& run);
std::unique_ptr<EngineObserver> make_listeners_search(std::span<Listener* const> listeners);

}  // namespace brigade::autograd
