// Listeners from inside autograd: the template part of Plan, and the listeners of a thread.
#pragma once

#include <brigade/autograd/listener.h>
#include <brigade/autograd/meta.h>

#include <memory>
#include <vector>

namespace brigade::autograd {

// --- The template part of Plan.

template <class F>
void Plan::for_each_observed(const Listener* listener, F&& f) const {
  for (const Tensor& leaf : leaves_) {
    for (const AutogradMeta::Observer& observer : meta(leaf)->observers) {
      if (observer.listener == listener) f(observer.tag);
    }
  }
}

}  // namespace brigade::autograd

namespace brigade::autograd::detail {

// --- The listeners registered for every backward of a thread.

// The calling thread's listeners, in the order in which they were added; the result keeps them alive.
std::vector<std::shared_ptr<Listener>> registered_listeners();

}  // namespace brigade::autograd::detail
