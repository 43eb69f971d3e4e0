// The template part of Plan.
#pragma once

#include <brigade/autograd/listener.h>
#include <brigade/autograd/meta.h>

namespace brigade::autograd {

template <class F>
void Plan::for_each_observed(const Listener* listener, F&& f) const {
  for (const Tensor& leaf : leaves_) {
    for (const AutogradMeta::Observer& observer : meta(leaf)->observers) {
      if (observer.listener == listener) f(observer.tag);
    }
  }
}

}  // namespace brigade::autograd
