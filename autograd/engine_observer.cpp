// Chooses the observers of a backward; each ignores the events that it does not override.
#include <brigade/autograd/engine_observer.h>

#include <brigade/autograd/detail/findings.h>

#include <utility>

namespace brigade::autograd {

void EngineObserver::on_found(const Node&) {}
void EngineObserver::on_gathered(const GatheredGraph&) {}
void EngineObserver::on_node_run(const Node&, std::span<const Tensor>, std::span<const Tensor>) {}
void EngineObserver::on_stopped(const Node&, uint32_t) {}
void EngineObserver::on_leaf_hook(const Tensor&) {}
void EngineObserver::on_changing_hook(const Tensor&, SourceLocation, const Tensor&) {}
void EngineObserver::on_accumulated(const Tensor&, uint32_t) {}
void EngineObserver::on_ended(const GatheredGraph&) {}

void attach_observers(EngineObservers& observers, const ObservedRun& run) {
  // The findings of the latest backward begin again, even if this one adds none.
  if (!run.is_captured && !run.is_nested) {
    detail::stopped_gradients() = {};
    detail::stopped_gradients().backward = run.number;
  }
  const auto attach = [&](std::unique_ptr<EngineObserver> observer) {
    if (observer) observers.push_back(std::move(observer));
  };
  // Of those that look at each node, the one that throws comes last.
  attach(make_retained_graphs(run));
  attach(make_scale_labels(run));
  attach(make_stopped_gradients(run));
  attach(make_unbounded_derivatives(run));
  attach(make_anomaly_search(run));
}

void attach_search(EngineObservers& observers, std::span<Listener* const> listeners) {
  if (auto search = make_listeners_search(listeners)) observers.insert(observers.begin(), std::move(search));
}

}  // namespace brigade::autograd
