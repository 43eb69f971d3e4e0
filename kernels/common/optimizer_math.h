// The arithmetic of the optimizer steps, one element at a time, for CPU and CUDA loops.
#pragma once

#include <brigade/core/compiler.h>
#include <brigade/kernels/common/arguments.h>
#include <brigade/kernels/optimizer.h>

#include <cmath>

namespace brigade::kernels {

// --- SGD and Adam.
//
// An update functor takes the element's values v: v[0] is the parameter, v[1] the gradient, the others the optimizer
// state. It writes the new values to v; the gradient is not stored.

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

// --- RMSprop, Adagrad, Adadelta, RAdam, NAdam and Lion.

// The gradient that a step uses: negated for maximize, with the weight decay added.
template <class C>
struct Slope {
  C sign, weight_decay;

  Slope(bool maximize, double decay) : sign(maximize ? C(-1) : C(1)), weight_decay(static_cast<C>(decay)) {}
  BRIGADE_HOST_DEVICE C operator()(C value, C grad) const { return sign * grad + weight_decay * value; }
};

// A running mean: mean += (x - mean) * (1 - keep), in the form that PyTorch uses for squares.
template <class C>
struct RunningMean {
  C keep, fresh;

  explicit RunningMean(double decay) : keep(static_cast<C>(decay)), fresh(static_cast<C>(1 - decay)) {}
  BRIGADE_HOST_DEVICE C operator()(C mean, C x) const { return keep * mean + fresh * x; }
  BRIGADE_HOST_DEVICE C square(C mean, C x) const { return keep * mean + fresh * x * x; }
};

// v: parameter, gradient, square_avg, then grad_avg if centered, then the momentum buffer if has_buffer.
template <class C, bool centered, bool has_buffer>
struct RmspropUpdate {
  static constexpr int kArrays = 3 + centered + has_buffer;
  Slope<C> slope;
  RunningMean<C> mean;
  C lr, eps, momentum;

  explicit RmspropUpdate(const RmspropParams& r)
      : slope(r.maximize, r.weight_decay),
        mean(r.alpha),
        lr(static_cast<C>(r.lr)),
        eps(static_cast<C>(r.eps)),
        momentum(static_cast<C>(r.momentum)) {}
  BRIGADE_HOST_DEVICE void operator()(C (&v)[kArrays]) const {
    const C g = slope(v[0], v[1]);
    v[2] = mean.square(v[2], g);
    C variance = v[2];
    if constexpr (centered) {
      v[3] = mean(v[3], g);
      variance = v[2] - v[3] * v[3];
    }
    C move = g / (std::sqrt(variance) + eps);
    if constexpr (has_buffer) {
      move += momentum * v[kArrays - 1];
      v[kArrays - 1] = move;
    }
    v[0] = v[0] - lr * move;
  }
};

template <class C>
struct AdagradUpdate {
  static constexpr int kArrays = 3;
  Slope<C> slope;
  C step_size, eps;

  explicit AdagradUpdate(const AdagradParams& a)
      : slope(a.maximize, a.weight_decay),
        step_size(static_cast<C>(a.lr / (1 + static_cast<double>(a.step - 1) * a.lr_decay))),
        eps(static_cast<C>(a.eps)) {}
  BRIGADE_HOST_DEVICE void operator()(C (&v)[kArrays]) const {
    const C g = slope(v[0], v[1]);
    v[2] = v[2] + g * g;
    v[0] = v[0] - step_size * g / (std::sqrt(v[2]) + eps);
  }
};

template <class C>
struct AdadeltaUpdate {
  static constexpr int kArrays = 4;
  Slope<C> slope;
  RunningMean<C> mean;
  C lr, eps;

  explicit AdadeltaUpdate(const AdadeltaParams& a)
      : slope(a.maximize, a.weight_decay), mean(a.rho), lr(static_cast<C>(a.lr)), eps(static_cast<C>(a.eps)) {}
  BRIGADE_HOST_DEVICE void operator()(C (&v)[kArrays]) const {
    const C g = slope(v[0], v[1]);
    v[2] = mean.square(v[2], g);
    const C delta = std::sqrt(v[3] + eps) / std::sqrt(v[2] + eps) * g;
    v[3] = mean.square(v[3], delta);
    v[0] = v[0] - lr * delta;
  }
};

// Common parts of RAdam and NAdam: weight decay and moments.
template <class C>
struct AdamMoments {
  Slope<C> slope;
  C shrink;
  RunningMean<C> first, second;

  AdamMoments(double beta1, double beta2, double lr, double weight_decay, bool decoupled, bool maximize)
      : slope(maximize, decoupled ? 0 : weight_decay),
        shrink(static_cast<C>(decoupled ? 1 - lr * weight_decay : 1)),
        first(beta1),
        second(beta2) {}
  // Updates the moments v[2] and v[3], decays the parameter v[0], and returns the slope.
  BRIGADE_HOST_DEVICE C operator()(C (&v)[4]) const {
    v[0] = v[0] * shrink;
    const C g = slope(v[0], v[1]);
    v[2] = first(v[2], g);
    v[3] = second.square(v[3], g);
    return g;
  }
};

template <class C, bool rectified>
struct RAdamUpdate {
  static constexpr int kArrays = 4;
  AdamMoments<C> moments;
  C step_size, eps;  // step_size includes the rectification

  RAdamUpdate(const RAdamParams& r, double rectification)
      : moments(r.beta1, r.beta2, r.lr, r.weight_decay, r.decoupled_weight_decay, r.maximize),
        step_size(static_cast<C>(r.lr / (1 - std::pow(r.beta1, static_cast<double>(r.step))) * rectification)),
        eps(static_cast<C>(r.eps)) {}
  BRIGADE_HOST_DEVICE void operator()(C (&v)[kArrays]) const {
    moments(v);
    C move = step_size * v[2];
    if constexpr (rectified) move = move / (std::sqrt(v[3]) + eps);
    v[0] = v[0] - move;
  }
};

// sqrt(1 - beta2^t) times the rectification of step t (equation 5 of the paper), or 0 where the
// variance is not tractable (the length of the mean is at most 5, as in PyTorch).
inline double radam_rectification(double beta2, int64_t step) {
  const auto t = static_cast<double>(step);
  const double power = std::pow(beta2, t);
  const double longest = 2 / (1 - beta2) - 1;
  const double length = longest - 2 * t * power / (1 - power);
  if (!(length > 5)) return 0;
  return std::sqrt(1 - power) *
         std::sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length));
}

template <class C>
struct NAdamUpdate {
  static constexpr int kArrays = 4;
  AdamMoments<C> moments;
  C by_gradient, by_mean, root, eps;

  explicit NAdamUpdate(const NAdamParams& n)
      : moments(n.beta1, n.beta2, n.lr, n.weight_decay, n.decoupled_weight_decay, n.maximize),
        by_gradient(static_cast<C>(n.lr * (1 - nadam_mu(n.beta1, n.momentum_decay, n.step)) / (1 - n.mu_product))),
        root(static_cast<C>(std::sqrt(1 - std::pow(n.beta2, static_cast<double>(n.step))))),
        eps(static_cast<C>(n.eps)) {
    const double next = nadam_mu(n.beta1, n.momentum_decay, n.step + 1);
    by_mean = static_cast<C>(n.lr * next / (1 - n.mu_product * next));
  }
  BRIGADE_HOST_DEVICE void operator()(C (&v)[kArrays]) const {
    const C g = moments(v);
    v[0] = v[0] - (by_gradient * g + by_mean * v[2]) / (std::sqrt(v[3]) / root + eps);
  }
};

template <class C>
struct LionUpdate {
  static constexpr int kArrays = 3;
  C sign, shrink, lr;
  RunningMean<C> direction, mean;

  explicit LionUpdate(const LionParams& l)
      : sign(l.maximize ? C(-1) : C(1)),
        shrink(static_cast<C>(1 - l.lr * l.weight_decay)),
        lr(static_cast<C>(l.lr)),
        direction(l.beta1),
        mean(l.beta2) {}
  BRIGADE_HOST_DEVICE void operator()(C (&v)[kArrays]) const {
    const C g = sign * v[1];
    const C c = direction(v[2], g);
    // c - c is 0, or NaN where c is NaN (or infinite, where the result is useless anyway).
    v[0] = v[0] * shrink - (c > C(0) ? lr : c < C(0) ? -lr : c - c);
    v[2] = mean(v[2], g);
  }
};

}  // namespace brigade::kernels
