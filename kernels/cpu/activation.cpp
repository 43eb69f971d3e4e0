#include <brigade/kernels/activation.h>

#include <brigade/kernels/cpu/detail/gelu.h>
#include <brigade/kernels/cpu/detail/map.h>
#include <brigade/kernels/cpu/detail/math.h>
#include <brigade/kernels/detail/functors.h>

#include <numbers>

namespace brigade::kernels {

namespace {

using cpu::map;
using cpu::map_backward;

// A NaN passes through, as in PyTorch.
Tensor relu_cpu(const Tensor& x) {
  return map(x, "relu", 1, [](auto v) { return v < 0 ? decltype(v)(0) : v; });
}
Tensor relu_backward_cpu(const Tensor& grad, const Tensor& y) {
  return map_backward(grad, y, "relu backward", 1, [](auto g, auto v) { return v <= 0 ? decltype(g)(0) : g; });
}

Tensor leaky_relu_cpu(const Tensor& x, double slope) {
  return map(x, "leaky_relu", 1,
             [slope](auto v) { return v > 0 ? v : static_cast<decltype(v)>(v * static_cast<decltype(v)>(slope)); });
}
Tensor leaky_relu_backward_cpu(const Tensor& grad, const Tensor& x, double slope) {
  return map_backward(grad, x, "leaky_relu backward", 1,
                      [slope](auto g, auto v) { return v > 0 ? g : g * static_cast<decltype(g)>(slope); });
}

// gelu(x) = x/2 (1 + erf(x / sqrt 2)), or x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
constexpr double kSqrtHalf = 1 / std::numbers::sqrt2;
constexpr double kSqrtTwoOverPi = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
constexpr double kCubic = 0.044715;

// The upper tail of the normal distribution at |x|, from which both sides follow: 1 - Phi(x) where x > 0, Phi(x)
// elsewhere; and exp(-x^2 / 2).
struct NormalTail {
  float z, density, tail;
  explicit NormalTail(float x) : z(std::fabs(x) > 14.0F ? 14.0F : std::fabs(x)) {
    density = cpu::exp(-0.5F * z * z);
    tail = density * cpu::normal_tail_factor(z);
  }
};

struct Gelu {
  double operator()(double x) const { return 0.5 * x * (1 + std::erf(x * kSqrtHalf)); }
  float operator()(float x) const {
    const NormalTail normal(x);
    return (x < 0 ? 0.0F : x) - normal.z * normal.tail;
  }
};
struct GeluBackward {
  double operator()(double g, double x) const {
    const double cdf = 0.5 * (1 + std::erf(x * kSqrtHalf));
    return g * (cdf + x * std::exp(-0.5 * x * x) * (kSqrtHalf * std::numbers::inv_sqrtpi));
  }
  float operator()(float g, float x) const {
    const NormalTail normal(x);
    const float cdf = x > 0 ? 1.0F - normal.tail : normal.tail;
    return g * (cdf +
                std::copysign(normal.z, x) * normal.density * static_cast<float>(kSqrtHalf * std::numbers::inv_sqrtpi));
  }
};

Tensor gelu_cpu(const Tensor& x, bool tanh_approximation) {
  if (tanh_approximation) {
    return map(x, "gelu", 8, []<class C>(C v) {
      return C(0.5) * v * (C(1) + cpu::tanh(C(kSqrtTwoOverPi) * (v + C(kCubic) * v * v * v)));
    });
  }
  if constexpr (cpu::kHasGeluTable) {
    if (x.dtype() == kFloat32) {
      const Tensor source = contiguous(x);
      Tensor y = empty(x.sizes(), x.options());
      const float* const from = source.data_ptr<float>();
      float* const to = y.data_ptr<float>();
      cpu::parallel_for(
          y.numel(), [&](int64_t begin, int64_t end) { cpu::gelu_by_table(from + begin, to + begin, end - begin); }, 4);
      return y;
    }
  }
  return map(x, "gelu", 16, Gelu{});
}

Tensor gelu_backward_cpu(const Tensor& grad, const Tensor& x, bool tanh_approximation) {
  if (tanh_approximation) {
    return map_backward(grad, x, "gelu backward", 8, []<class C>(C g, C v) {
      const C t = cpu::tanh(C(kSqrtTwoOverPi) * (v + C(kCubic) * v * v * v));
      const C inner = C(kSqrtTwoOverPi) * (C(1) + C(3 * kCubic) * v * v);
      return g * (C(0.5) * (C(1) + t) + C(0.5) * v * (C(1) - t * t) * inner);
    });
  }
  if constexpr (cpu::kHasGeluTable) {
    if (x.dtype() == kFloat32) {
      check_gradient_like(grad, x, "gelu backward");
      const Tensor g = contiguous(grad);
      const Tensor source = contiguous(x);
      Tensor out = empty(x.sizes(), x.options());
      const float* const slope = g.data_ptr<float>();
      const float* const from = source.data_ptr<float>();
      float* const to = out.data_ptr<float>();
      cpu::parallel_for(
          out.numel(),
          [&](int64_t begin, int64_t end) {
            cpu::gelu_backward_by_table(slope + begin, from + begin, to + begin, end - begin);
          },
          4);
      return out;
    }
  }
  return map_backward(grad, x, "gelu backward", 16, GeluBackward{});
}

Tensor tanh_cpu(const Tensor& x) {
  return map(x, "tanh", 8, [](auto v) { return cpu::tanh(v); });
}
Tensor tanh_backward_cpu(const Tensor& grad, const Tensor& y) {
  return map_backward(grad, y, "tanh backward", 1, [](auto g, auto v) { return g * (decltype(v)(1) - v * v); });
}

Tensor sigmoid_cpu(const Tensor& x) {
  return map(x, "sigmoid", 8, [](auto v) { return cpu::sigmoid(v); });
}
Tensor sigmoid_backward_cpu(const Tensor& grad, const Tensor& y) {
  return map_backward(grad, y, "sigmoid backward", 1, [](auto g, auto v) { return g * v * (decltype(v)(1) - v); });
}

struct Sigmoid {
  template <class C>
  C operator()(C x) const {
    return cpu::sigmoid(x);
  }
};
Tensor silu_cpu(const Tensor& x) { return map(x, "silu", 8, Silu<Sigmoid>{}); }
Tensor silu_backward_cpu(const Tensor& grad, const Tensor& x) {
  return map_backward(grad, x, "silu backward", 8, SiluBackward<Sigmoid>{});
}

}  // namespace

constinit Kernel<Tensor(const Tensor&)> relu("relu", &relu_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&)> relu_backward("relu_backward", &relu_backward_cpu);
constinit Kernel<Tensor(const Tensor&, double)> leaky_relu("leaky_relu", &leaky_relu_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, double)> leaky_relu_backward("leaky_relu_backward",
                                                                                   &leaky_relu_backward_cpu);
constinit Kernel<Tensor(const Tensor&, bool)> gelu("gelu", &gelu_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, bool)> gelu_backward("gelu_backward", &gelu_backward_cpu);
constinit Kernel<Tensor(const Tensor&)> tanh("tanh", &tanh_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&)> tanh_backward("tanh_backward", &tanh_backward_cpu);
constinit Kernel<Tensor(const Tensor&)> sigmoid("sigmoid", &sigmoid_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&)> sigmoid_backward("sigmoid_backward", &sigmoid_backward_cpu);
constinit Kernel<Tensor(const Tensor&)> silu("silu", &silu_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&)> silu_backward("silu_backward", &silu_backward_cpu);

}  // namespace brigade::kernels
