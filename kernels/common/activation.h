// Functors of the activations and their gradients.
#pragma once

#include <brigade/core/compiler.h>
#include <brigade/kernels/activation.h>

#include <cmath>
#include <numbers>
#include <utility>
#include <variant>

namespace brigade::kernels {

// --- Activations without parameters, for the double loops of the CPU and for CUDA. The CPU's float32 loops dispatch on
// the same types (cpu/vector/activation.cpp).

// gelu(x) = x/2 (1 + erf(x / sqrt 2)), or x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
inline constexpr double kSqrtHalf = 1 / std::numbers::sqrt2;
inline constexpr double kSqrtTwoOverPi = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
inline constexpr double kGeluCubic = 0.044715;

// NaNs propagate, as in PyTorch.
struct Relu {
  template <class C>
  BRIGADE_HOST_DEVICE C operator()(C x) const {
    return x < C(0) ? C(0) : x;
  }
};
struct ReluBackward {
  template <class C>
  BRIGADE_HOST_DEVICE C operator()(C grad, C y) const {
    return y <= C(0) ? C(0) : grad;
  }
};
struct LeakyRelu {
  double slope;
  template <class C>
  BRIGADE_HOST_DEVICE C operator()(C x) const {
    return x > C(0) ? x : x * static_cast<C>(slope);
  }
};
struct LeakyReluBackward {
  double slope;
  template <class C>
  BRIGADE_HOST_DEVICE C operator()(C grad, C x) const {
    return x > C(0) ? grad : grad * static_cast<C>(slope);
  }
};

struct Gelu {
  template <class C>
  BRIGADE_HOST_DEVICE C operator()(C x) const {
    return C(0.5) * x * (C(1) + std::erf(x * C(kSqrtHalf)));
  }
};
struct GeluBackward {
  template <class C>
  BRIGADE_HOST_DEVICE C operator()(C grad, C x) const {
    const C cdf = C(0.5) * (C(1) + std::erf(x * C(kSqrtHalf)));
    const C pdf = std::exp(C(-0.5) * x * x) * C(kSqrtHalf * std::numbers::inv_sqrtpi);
    return grad * (cdf + x * pdf);
  }
};
struct GeluTanh {
  template <class C>
  BRIGADE_HOST_DEVICE C operator()(C x) const {
    return C(0.5) * x * (C(1) + std::tanh(C(kSqrtTwoOverPi) * (x + C(kGeluCubic) * x * x * x)));
  }
};
struct GeluTanhBackward {
  template <class C>
  BRIGADE_HOST_DEVICE C operator()(C grad, C x) const {
    const C t = std::tanh(C(kSqrtTwoOverPi) * (x + C(kGeluCubic) * x * x * x));
    const C inner = C(kSqrtTwoOverPi) * (C(1) + C(3 * kGeluCubic) * x * x);
    return grad * (C(0.5) * (C(1) + t) + C(0.5) * x * (C(1) - t * t) * inner);
  }
};

struct Tanh {
  template <class C>
  BRIGADE_HOST_DEVICE C operator()(C x) const {
    return std::tanh(x);
  }
};
struct TanhBackward {
  template <class C>
  BRIGADE_HOST_DEVICE C operator()(C grad, C y) const {
    return grad * (C(1) - y * y);
  }
};
struct Sigmoid {
  template <class C>
  BRIGADE_HOST_DEVICE C operator()(C x) const {
    return C(1) / (C(1) + std::exp(-x));
  }
};
struct SigmoidBackward {
  template <class C>
  BRIGADE_HOST_DEVICE C operator()(C grad, C y) const {
    return grad * y * (C(1) - y);
  }
};

// x * sigmoid(x)
struct Silu {
  template <class C>
  BRIGADE_HOST_DEVICE C operator()(C x) const {
    return x * Sigmoid{}(x);
  }
};
struct SiluBackward {
  template <class C>
  BRIGADE_HOST_DEVICE C operator()(C grad, C x) const {
    const C s = Sigmoid{}(x);
    return grad * (s + x * s * (C(1) - s));
  }
};

// Any of the functors above.
using ActivationFunction =
    std::variant<Relu, ReluBackward, LeakyRelu, LeakyReluBackward, Gelu, GeluBackward, GeluTanh, GeluTanhBackward, Tanh,
                 TanhBackward, Sigmoid, SigmoidBackward, Silu, SiluBackward>;

// --- Activations with parameters. M has the device's best implementations of exp, expm1 and log1p.

// The parameters in the compute type.
template <class C>
struct Parameters {
  C p, q, r;
  explicit Parameters(const ActivationParams& params)
      : p(static_cast<C>(params.p)), q(static_cast<C>(params.q)), r(static_cast<C>(params.r)) {}
};

// Values that are not selected are computed as well, so that loops have no branches; they may overflow.
template <Activation kind, class M, class C>
struct Activate {
  Parameters<C> with;
  BRIGADE_HOST_DEVICE C operator()(C x) const {
    if constexpr (kind == Activation::Elu) return x > C(0) ? x * with.q : M::expm1(x * with.r) * with.p * with.q;
    if constexpr (kind == Activation::Softplus) {
      const C y = M::log1p(M::exp(x * with.p)) / with.p;
      return x * with.p > with.q ? x : y;
    }
    if constexpr (kind == Activation::Hardtanh) {
      x = x < with.p ? with.p : x;
      return x > with.q ? with.q : x;
    }
    if constexpr (kind == Activation::Hardsigmoid || kind == Activation::Hardswish) {
      C y = x + C(3);
      y = y < C(0) ? C(0) : y;
      y = (y > C(6) ? C(6) : y) / C(6);
      return kind == Activation::Hardswish ? x * y : y;
    }
    if constexpr (kind == Activation::Mish) {
      // tanh(log(1 + e)) = ((1 + e)^2 - 1) / ((1 + e)^2 + 1); 1 where e^2 would overflow.
      const C e = M::exp(x < C(20) ? x : C(20));
      const C n = e * (e + C(2));
      return x != x ? x : x * (n / (n + C(2)));
    }
    if constexpr (kind == Activation::Softsign) return x / (C(1) + std::fabs(x));
    if constexpr (kind == Activation::LogSigmoid) return (x < C(0) ? x : C(0)) - M::log1p(M::exp(-std::fabs(x)));
    if constexpr (kind == Activation::Softshrink) {
      const C y = x < -with.p ? x + with.p : x * C(0);  // of NaN: NaN
      return x > with.p ? x - with.p : y;
    }
    if constexpr (kind == Activation::Hardshrink) return x >= -with.p && x <= with.p ? C(0) : x;
  }
};

template <Activation kind, class M, class C>
struct ActivateBackward {
  Parameters<C> with;
  BRIGADE_HOST_DEVICE C operator()(C grad, C x) const {
    if constexpr (kind == Activation::Elu) {
      const C y = M::exp(x * with.r) * (with.p * with.q * with.r);
      return grad * (x > C(0) ? with.q : y);  // of NaN: NaN
    }
    if constexpr (kind == Activation::Softplus) {
      const C y = C(1) / (C(1) + M::exp(-x * with.p));
      return grad * (x * with.p > with.q ? C(1) : y);
    }
    if constexpr (kind == Activation::Hardtanh) return x > with.p && x < with.q ? grad : C(0);
    if constexpr (kind == Activation::Hardsigmoid) return x > C(-3) && x < C(3) ? grad / C(6) : C(0);
    if constexpr (kind == Activation::Hardswish) {
      const C y = x >= C(3) ? grad : grad * (x / C(3) + C(0.5));  // of NaN: NaN
      return x <= C(-3) ? C(0) : y;
    }
    if constexpr (kind == Activation::Mish) {
      const C e = M::exp(x < C(20) ? x : C(20));
      const C n = e * (e + C(2));
      const C t = n / (n + C(2));
      // The derivative of t by x is (1 - t^2) sigmoid(x), with 1 - t^2 = 4 (n + 1) / (n + 2)^2.
      const C slope = C(4) * (n + C(1)) / ((n + C(2)) * (n + C(2))) * (e / (C(1) + e));
      // Where e was clamped, the true slope is 0, unlike the computed one.
      return x != x ? x : grad * (t + x * (x < C(20) ? slope : C(0)));
    }
    if constexpr (kind == Activation::Softsign) {
      const C d = C(1) + std::fabs(x);
      return grad / (d * d);
    }
    if constexpr (kind == Activation::LogSigmoid) {
      const C e = M::exp(-std::fabs(x));
      return grad * (x < C(0) ? C(1) : e) / (C(1) + e);
    }
    if constexpr (kind == Activation::Softshrink || kind == Activation::Hardshrink) {
      return x < -with.p || x > with.p ? grad : C(0);
    }
  }
};

// Calls body with a std::integral_constant of the kind, so that a loop is compiled once per kind
// and dtype.
template <class Body>
void with_activation(Activation kind, Body&& body) {
  [&]<int... i>(std::integer_sequence<int, i...>) {
    (void)((static_cast<int>(kind) == i &&
            (body(std::integral_constant<Activation, static_cast<Activation>(i)>{}), true)) ||
           ...);
  }
  (std::make_integer_sequence<int, kActivations>{});
}

// Selects the kind at run time.
template <class M, class C, int... i>
BRIGADE_HOST_DEVICE C any_activation(Activation kind, Parameters<C> with, C x, std::integer_sequence<int, i...>) {
  C y = x;
  (void)((static_cast<int>(kind) == i && (y = Activate<static_cast<Activation>(i), M, C>{with}(x), true)) || ...);
  return y;
}
template <class M, class C, int... i>
BRIGADE_HOST_DEVICE C any_activation_backward(Activation kind, Parameters<C> with, C grad, C x,
                                              std::integer_sequence<int, i...>) {
  C y = x;
  (void)((static_cast<int>(kind) == i &&
          (y = ActivateBackward<static_cast<Activation>(i), M, C>{with}(grad, x), true)) ||
         ...);
  return y;
}

}  // namespace brigade::kernels
