#include <brigade/kernels/activation.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/cpu/detail/stretches.h>
#include <brigade/kernels/cpu/vector/activation.h>
#include <brigade/kernels/detail/functors.h>

#include <cmath>
#include <numbers>

namespace brigade::kernels {

namespace {

using cpu::loop1;
using cpu::loop2;

// Loops over float32 (vector/activation.h) as stretches want them.
auto floats(void (*loop)(const float*, float*, int64_t)) {
  return [loop](const float* const* in, float* out, int64_t n) { loop(in[0], out, n); };
}
auto floats(void (*loop)(const float*, const float*, float*, int64_t)) {
  return [loop](const float* const* in, float* out, int64_t n) { loop(in[0], in[1], out, n); };
}

// relu of halves looks at their bits, which for numbers below 0 lie between those of -0 and -infinity: nothing is
// converted.
bool is_dense_half(const Tensor& x) { return is_half(x.dtype()) && x.is_contiguous(); }
template <class F>
void for_bits(const Tensor& out, F f) {
  const uint16_t infinity = out.dtype() == kFloat16 ? 0x7c00 : 0x7f80;
  auto* const to = static_cast<uint16_t*>(out.raw_data());
  cpu::parallel_for(out.numel(), [=](int64_t begin, int64_t end) {
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i)
      to[i] = f(i, infinity);
  });
}
Tensor relu_of_halves(const Tensor& x) {
  Tensor y = empty(x.sizes(), x.options());
  const auto* const in = static_cast<const uint16_t*>(x.raw_data());
  for_bits(y, [=](int64_t i, uint16_t infinity) {
    return static_cast<uint16_t>(static_cast<uint16_t>(in[i] - 0x8001) < infinity ? 0 : in[i]);
  });
  return y;
}
Tensor relu_gradient_of_halves(const Tensor& grad, const Tensor& y) {
  Tensor result = empty(y.sizes(), y.options());
  const auto* const slope = static_cast<const uint16_t*>(grad.raw_data());
  const auto* const at = static_cast<const uint16_t*>(y.raw_data());
  for_bits(result, [=](int64_t i, uint16_t infinity) {
    // Without a branch, so that it is done for a vector at once.
    const auto is_nothing = static_cast<uint16_t>((at[i] == 0) | (static_cast<uint16_t>(at[i] - 0x8000) <= infinity));
    return static_cast<uint16_t>(slope[i] & static_cast<uint16_t>(is_nothing - 1));
  });
  return result;
}

// A NaN passes through, as in PyTorch.
Tensor relu_cpu(const Tensor& x) {
  if (is_dense_half(x)) return relu_of_halves(x);
  if (cpu::is_few(x)) {
    const Tensor y = empty(x.sizes(), kFloat32);
    const auto* const in = static_cast<const float*>(x.raw_data());
    auto* const out = static_cast<float*>(y.raw_data());
    for (int64_t i = 0; i < x.numel(); ++i)
      out[i] = in[i] < 0 ? 0.0F : in[i];
    return y;
  }
  return cpu::map("relu", x, 1, floats(&cpu::relu_floats), loop1<double>([](double v) { return v < 0 ? 0.0 : v; }));
}
Tensor relu_backward_cpu(const Tensor& grad, const Tensor& y) {
  if (is_dense_half(y) && grad.is_contiguous() && grad.dtype() == y.dtype() && grad.sizes() == y.sizes())
    return relu_gradient_of_halves(grad, y);
  if (cpu::is_few(y) && cpu::is_few(grad) && grad.sizes() == y.sizes()) {
    const Tensor result = empty(y.sizes(), kFloat32);
    const auto* const slope = static_cast<const float*>(grad.raw_data());
    const auto* const at = static_cast<const float*>(y.raw_data());
    auto* const out = static_cast<float*>(result.raw_data());
    for (int64_t i = 0; i < y.numel(); ++i)
      out[i] = at[i] <= 0 ? 0.0F : slope[i];
    return result;
  }
  return cpu::map_backward("relu backward", grad, y, 1, floats(&cpu::relu_gradient_floats),
                           loop2<double>([](double g, double v) { return v <= 0 ? 0.0 : g; }));
}

Tensor leaky_relu_cpu(const Tensor& x, double slope) {
  return cpu::map(
      "leaky_relu", x, 1,
      [=](const float* const* in, float* out, int64_t n) {
        cpu::leaky_relu_floats(in[0], static_cast<float>(slope), out, n);
      },
      loop1<double>([=](double v) { return v > 0 ? v : v * slope; }));
}
Tensor leaky_relu_backward_cpu(const Tensor& grad, const Tensor& x, double slope) {
  return cpu::map_backward(
      "leaky_relu backward", grad, x, 1,
      [=](const float* const* in, float* out, int64_t n) {
        cpu::leaky_relu_gradient_floats(in[0], in[1], static_cast<float>(slope), out, n);
      },
      loop2<double>([=](double g, double v) { return v > 0 ? g : g * slope; }));
}

// gelu(x) = x/2 (1 + erf(x / sqrt 2)), or x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
constexpr double kSqrtHalf = 1 / std::numbers::sqrt2;
constexpr double kSqrtTwoOverPi = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
constexpr double kCubic = 0.044715;

Tensor gelu_cpu(const Tensor& x, bool tanh_approximation) {
  if (tanh_approximation) {
    return cpu::map("gelu", x, 8, floats(&cpu::gelu_tanh_floats), loop1<double>([](double v) {
                      return 0.5 * v * (1 + std::tanh(kSqrtTwoOverPi * (v + kCubic * v * v * v)));
                    }));
  }
  return cpu::map("gelu", x, 8, floats(&cpu::gelu_floats),
                  loop1<double>([](double v) { return 0.5 * v * (1 + std::erf(v * kSqrtHalf)); }));
}

Tensor gelu_backward_cpu(const Tensor& grad, const Tensor& x, bool tanh_approximation) {
  if (tanh_approximation) {
    return cpu::map_backward("gelu backward", grad, x, 8, floats(&cpu::gelu_tanh_gradient_floats),
                             loop2<double>([](double g, double v) {
                               const double t = std::tanh(kSqrtTwoOverPi * (v + kCubic * v * v * v));
                               const double inner = kSqrtTwoOverPi * (1 + 3 * kCubic * v * v);
                               return g * (0.5 * (1 + t) + 0.5 * v * (1 - t * t) * inner);
                             }));
  }
  return cpu::map_backward("gelu backward", grad, x, 8, floats(&cpu::gelu_gradient_floats),
                           loop2<double>([](double g, double v) {
                             const double cdf = 0.5 * (1 + std::erf(v * kSqrtHalf));
                             return g * (cdf + v * std::exp(-0.5 * v * v) * (kSqrtHalf * std::numbers::inv_sqrtpi));
                           }));
}

Tensor tanh_cpu(const Tensor& x) {
  return cpu::map("tanh", x, 8, floats(&cpu::tanh_floats), loop1<double>([](double v) { return std::tanh(v); }));
}
Tensor tanh_backward_cpu(const Tensor& grad, const Tensor& y) {
  return cpu::map_backward("tanh backward", grad, y, 1, floats(&cpu::tanh_gradient_floats),
                           loop2<double>([](double g, double v) { return g * (1 - v * v); }));
}

struct Sigmoid {
  double operator()(double x) const { return 1 / (1 + std::exp(-x)); }
};
Tensor sigmoid_cpu(const Tensor& x) {
  return cpu::map("sigmoid", x, 8, floats(&cpu::sigmoid_floats), loop1<double>(Sigmoid{}));
}
Tensor sigmoid_backward_cpu(const Tensor& grad, const Tensor& y) {
  return cpu::map_backward("sigmoid backward", grad, y, 1, floats(&cpu::sigmoid_gradient_floats),
                           loop2<double>([](double g, double v) { return g * v * (1 - v); }));
}

Tensor silu_cpu(const Tensor& x) {
  return cpu::map("silu", x, 8, floats(&cpu::silu_floats), loop1<double>(Silu<Sigmoid>{}));
}
Tensor silu_backward_cpu(const Tensor& grad, const Tensor& x) {
  return cpu::map_backward("silu backward", grad, x, 8, floats(&cpu::silu_gradient_floats),
                           loop2<double>(SiluBackward<Sigmoid>{}));
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
