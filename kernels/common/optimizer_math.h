// The arithmetic of optimizer.h, one element at a time, for CPU and CUDA loops.
//
// An update functor takes the element's values v: v[0] is the parameter, v[1] the gradient, the others the optimizer
// state. It writes the new values to v; the gradient is not stored.
#pragma once

#include <brigade/core/host_device.h>
#include <brigade/kernels/common/data_or_null.h>
#include <brigade/kernels/optimizer.h>

#include <cmath>

namespace brigade::kernels {

// C: the compute type of a parameter.
template <class C>
struct SgdStep {
  C lr, weight_decay, sign, momentum, kept, fresh;
  bool nesterov, first_step;

  explicit SgdStep(const SgdParams& s)
      : lr(static_cast<C>(s.lr)),
        weight_decay(static_cast<C>(s.weight_decay)),
        sign(static_cast<C>(s.maximize ? -s.grad_factor : s.grad_factor)),
        momentum(static_cast<C>(s.momentum)),
        kept(s.first_step ? C(0) : momentum),
        fresh(static_cast<C>(s.first_step ? 1 : 1 - s.dampening)),
        nesterov(s.nesterov),
        first_step(s.first_step) {}

  // The new value of a parameter without a momentum buffer.
  BRIGADE_HOST_DEVICE C operator()(C value, C grad) const { return value - lr * (sign * grad + weight_decay * value); }
  // The same with a momentum buffer. The first step ignores its contents (it may be uninitialized, so it is not
  // multiplied).
  BRIGADE_HOST_DEVICE C operator()(C value, C grad, C& velocity) const {
    const C slope = sign * grad + weight_decay * value;
    velocity = (first_step ? C(0) : kept * velocity) + fresh * slope;
    return value - lr * (nesterov ? slope + momentum * velocity : velocity);
  }
};

template <class C>
struct AdamStep {
  C step_size = 0, eps = 0;  // set by correct()
  C beta1, beta2, rest1, rest2, sign, weight_decay, shrink;

  explicit AdamStep(const AdamParams& a)
      : beta1(static_cast<C>(a.beta1)),
        beta2(static_cast<C>(a.beta2)),
        rest1(static_cast<C>(1 - a.beta1)),
        rest2(static_cast<C>(1 - a.beta2)),
        sign(static_cast<C>(a.maximize ? -a.grad_factor : a.grad_factor)),
        weight_decay(static_cast<C>(a.decoupled_weight_decay ? 0 : a.weight_decay)),
        shrink(static_cast<C>(a.decoupled_weight_decay ? 1 - a.lr * a.weight_decay : 1)) {}
  // Applies the bias corrections `first` = 1 - beta1^step and `root` = sqrt(1 - beta2^step). The second one is folded
  // into step_size and eps: one division per element instead of two.
  BRIGADE_HOST_DEVICE void correct(double lr, double plain_eps, double first, double root) {
    step_size = static_cast<C>(lr / first * root);
    eps = static_cast<C>(plain_eps * root);
  }

  // The new value; `first` and `second` are the moments, `highest` the largest second one so far
  // (with amsgrad only).
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
    return value - step_size * first / (std::sqrt(bound) + eps);
  }
};

// Values of a step that are in device memory; null if absent.
struct DeviceNumbers {
  const float* factor;
  const float* found_inf;
  const double* lr;

  template <class Params>
  explicit DeviceNumbers(const Params& p)
      : factor(data_or_null<const float>(p.device_factor)),
        found_inf(data_or_null<const float>(p.found_inf)),
        lr(data_or_null<const double>(p.device_lr)) {}
  BRIGADE_HOST_DEVICE bool moves() const { return !found_inf || *found_inf == 0; }
  template <class C>
  BRIGADE_HOST_DEVICE C times_factor(C x) const {
    return factor ? x * static_cast<C>(*factor) : x;
  }
};

// Call an update's begin() first, on the device that holds the numbers. It returns false if the step is skipped.
template <class C, bool has_buffer>
struct SgdUpdate {
  static constexpr int kArrays = has_buffer ? 3 : 2;
  SgdStep<C> step;
  DeviceNumbers numbers;

  explicit SgdUpdate(const SgdParams& s) : step(s), numbers(s) {}
  BRIGADE_HOST_DEVICE bool begin() {
    if (!numbers.moves()) return false;
    step.sign = numbers.times_factor(step.sign);
    if (numbers.lr) step.lr = static_cast<C>(*numbers.lr);
    return true;
  }
  BRIGADE_HOST_DEVICE void operator()(C (&v)[kArrays]) const {
    if constexpr (has_buffer) {
      v[0] = step(v[0], v[1], v[2]);
    } else {
      v[0] = step(v[0], v[1]);
    }
  }
};

template <class C, bool amsgrad>
struct AdamUpdate {
  static constexpr int kArrays = amsgrad ? 5 : 4;
  AdamStep<C> step;
  DeviceNumbers numbers;
  const double* clock;  // or null
  // Inputs of begin(): hyperparameters of the step, and the bias corrections if there is no clock.
  double lr, eps, decay, first = 0, root = 0;

  explicit AdamUpdate(const AdamParams& a)
      : step(a),
        numbers(a),
        clock(data_or_null<const double>(a.clock)),
        lr(a.lr),
        eps(a.eps),
        decay(a.decoupled_weight_decay ? a.weight_decay : 0) {
    if (clock) return;
    const auto steps = static_cast<double>(a.step);
    first = 1 - std::pow(a.beta1, steps);
    root = std::sqrt(1 - std::pow(a.beta2, steps));
    step.correct(lr, eps, first, root);
  }
  BRIGADE_HOST_DEVICE bool begin() {
    if (!numbers.moves()) return false;
    step.sign = numbers.times_factor(step.sign);
    if (!clock && !numbers.lr) return true;  // already corrected on the host
    const double rate = numbers.lr ? *numbers.lr : lr;
    step.shrink = static_cast<C>(1 - rate * decay);
    step.correct(rate, eps, clock ? clock[1] : first, clock ? clock[2] : root);
    return true;
  }
  BRIGADE_HOST_DEVICE void operator()(C (&v)[kArrays]) const {
    C none = C(0);
    C* highest = &none;
    if constexpr (amsgrad) highest = &v[4];
    v[0] = step.template next<amsgrad>(v[0], v[1], v[2], v[3], *highest);
  }
};

}  // namespace brigade::kernels
