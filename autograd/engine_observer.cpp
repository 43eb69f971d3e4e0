// Chooses the observers of a backward.
#include <brigade/autograd/engine_observer.h>

#include <brigade/autograd/detail/findings.h>

#include <utility>

namespace brigade::autograd {

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
