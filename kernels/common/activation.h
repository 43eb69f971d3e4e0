// Functors of the activations and their gradients, for the double loops of the CPU and for CUDA. The CPU's float32
// loops dispatch on the same types (cpu/vector/activation.cpp).
#pragma once

#include <brigade/core/host_device.h>

#include <cmath>
#include <numbers>
#include <variant>

namespace brigade::kernels {

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

}  // namespace brigade::kernels
