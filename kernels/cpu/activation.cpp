#include <brigade/kernels/activation.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/cpu/detail/math.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/detail/elementwise_checks.h>
#include <brigade/kernels/detail/functors.h>

#include <numbers>

namespace brigade::kernels {

namespace {

// y = f(x), in float for half types. `cost`: in elements of cheap work.
template <class F>
Tensor map(const Tensor& x, const char* what, int64_t cost, F f) {
  const Tensor source = contiguous(x);
  Tensor result = empty(x.sizes(), x.options());
  visit_floating(x.dtype(), what, [&]<class T>() {
    using C = compute_type<T>;
    const T* in = static_cast<const T*>(source.raw_data());
    T* out = static_cast<T*>(result.raw_data());
    cpu::parallel_for(
        x.numel(),
        [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            out[i] = static_cast<T>(f(static_cast<C>(in[i])));
        },
        cost);
  });
  return result;
}

// f(grad, x)
template <class F>
Tensor map_backward(const Tensor& grad, const Tensor& x, const char* what, int64_t cost, F f) {
  check_gradient_like(grad, x, what);
  const Tensor g = contiguous(grad);
  const Tensor source = contiguous(x);
  Tensor result = empty(x.sizes(), x.options());
  visit_floating(x.dtype(), what, [&]<class T>() {
    using C = compute_type<T>;
    const T* in = static_cast<const T*>(source.raw_data());
    const T* slope = static_cast<const T*>(g.raw_data());
    T* out = static_cast<T*>(result.raw_data());
    cpu::parallel_for(
        x.numel(),
        [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            out[i] = static_cast<T>(f(static_cast<C>(slope[i]), static_cast<C>(in[i])));
        },
        cost);
  });
  return result;
}

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

Tensor gelu_cpu(const Tensor& x, bool tanh_approximation) {
  if (!tanh_approximation) {
    return map(x, "gelu", 16, []<class C>(C v) { return C(0.5) * v * (C(1) + cpu::erf(v * C(kSqrtHalf))); });
  }
  return map(x, "gelu", 8, []<class C>(C v) {
    return C(0.5) * v * (C(1) + cpu::tanh(C(kSqrtTwoOverPi) * (v + C(kCubic) * v * v * v)));
  });
}

Tensor gelu_backward_cpu(const Tensor& grad, const Tensor& x, bool tanh_approximation) {
  if (!tanh_approximation) {
    return map_backward(grad, x, "gelu backward", 16, []<class C>(C g, C v) {
      const C cdf = C(0.5) * (C(1) + cpu::erf(v * C(kSqrtHalf)));
      const C pdf = cpu::exp(C(-0.5) * v * v) * C(kSqrtHalf * std::numbers::inv_sqrtpi);
      return g * (cdf + v * pdf);
    });
  }
  return map_backward(grad, x, "gelu backward", 8, []<class C>(C g, C v) {
    const C t = cpu::tanh(C(kSqrtTwoOverPi) * (v + C(kCubic) * v * v * v));
    const C inner = C(kSqrtTwoOverPi) * (C(1) + C(3 * kCubic) * v * v);
    return g * (C(0.5) * (C(1) + t) + C(0.5) * v * (C(1) - t * t) * inner);
  });
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
