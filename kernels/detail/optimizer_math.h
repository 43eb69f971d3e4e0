// The arithmetic of optimizer.h, one element at a time, for the CPU's loops and for CUDA's.
#pragma once

#include <brigade/core/host_device.h>
#include <brigade/kernels/optimizer.h>

#include <cmath>

namespace brigade::kernels {

// C: the type that a parameter is computed in.
template <class C>
struct SgdStep {
  C lr, weight_decay, sign, momentum, kept, fresh;
  bool nesterov, first_step;

  explicit SgdStep(const SgdParams& s)
      : lr(static_cast<C>(s.lr)),
        weight_decay(static_cast<C>(s.weight_decay)),
        sign(s.maximize ? C(-1) : C(1)),
        momentum(static_cast<C>(s.momentum)),
        kept(s.first_step ? C(0) : momentum),
        fresh(static_cast<C>(s.first_step ? 1 : 1 - s.dampening)),
        nesterov(s.nesterov),
        first_step(s.first_step) {}

  // The new value of a parameter without a momentum buffer.
  BRIGADE_HOST_DEVICE C operator()(C value, C grad) const { return value - lr * (sign * grad + weight_decay * value); }
  // With one. The first step ignores what it holds (it may be uninitialised, so it is not multiplied).
  BRIGADE_HOST_DEVICE C operator()(C value, C grad, C& velocity) const {
    const C slope = sign * grad + weight_decay * value;
    velocity = (first_step ? C(0) : kept * velocity) + fresh * slope;
    return value - lr * (nesterov ? slope + momentum * velocity : velocity);
  }
};

template <class C>
struct AdamStep {
  C step_size, root, beta1, beta2, rest1, rest2, eps, sign, weight_decay, shrink;

  explicit AdamStep(const AdamParams& a)
      : step_size(static_cast<C>(a.lr / (1 - std::pow(a.beta1, static_cast<double>(a.step))))),
        root(static_cast<C>(std::sqrt(1 - std::pow(a.beta2, static_cast<double>(a.step))))),
        beta1(static_cast<C>(a.beta1)),
        beta2(static_cast<C>(a.beta2)),
        rest1(static_cast<C>(1 - a.beta1)),
        rest2(static_cast<C>(1 - a.beta2)),
        eps(static_cast<C>(a.eps)),
        sign(a.maximize ? C(-1) : C(1)),
        weight_decay(static_cast<C>(a.decoupled_weight_decay ? 0 : a.weight_decay)),
        shrink(static_cast<C>(a.decoupled_weight_decay ? 1 - a.lr * a.weight_decay : 1)) {}

  // The new value; `first` and `second` are the moments, `highest` the largest second one so far (with amsgrad only).
  template <bool amsgrad>
  BRIGADE_HOST_DEVICE C next(C value, C grad, C& first, C& second, C& highest) const {
    value = value * shrink;
    const C slope = sign * grad + weight_decay * value;
    first = beta1 * first + rest1 * slope;
    second = beta2 * second + rest2 * slope * slope;
    C bound = second;
    if constexpr (amsgrad) {
      bound = highest > second ? highest : second;
      highest = bound;
    }
    return value - step_size * first / (std::sqrt(bound) / root + eps);
  }
};

}  // namespace brigade::kernels
