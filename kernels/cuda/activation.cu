// The CUDA column of activation.h: one pass over memory each, in the functions that the CUDA math library has.
#include <brigade/kernels/activation.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/common/elementwise.h>
#include <brigade/kernels/common/elementwise_functors.h>
#include <brigade/kernels/cuda/detail/map.h>

#include <cmath>
#include <numbers>

namespace brigade::kernels {

namespace {

template <class F>
Tensor map(const char* what, const Tensor& x, F f) {
  Tensor result = empty(x.sizes(), x.options());
  visit_floating(x.dtype(), what, [&]<class T>() { cuda::map1<T, T>(what, x, result, f); });
  return result;
}

// f(grad, x)
template <class F>
Tensor map_backward(const char* what, const Tensor& grad, const Tensor& x, F f) {
  check_gradient_like(grad, x, what);
  Tensor result = empty(x.sizes(), x.options());
  visit_floating(x.dtype(), what, [&]<class T>() { cuda::map2<T, T>(what, grad, x, result, f); });
  return result;
}

// A NaN passes through, as in PyTorch.
struct Relu {
  template <class C>
  __device__ C operator()(C x) const {
    return x < C(0) ? C(0) : x;
  }
};
struct ReluBackward {
  template <class C>
  __device__ C operator()(C grad, C y) const {
    return y <= C(0) ? C(0) : grad;
  }
};
struct LeakyRelu {
  double slope;
  template <class C>
  __device__ C operator()(C x) const {
    return x > C(0) ? x : x * static_cast<C>(slope);
  }
};
struct LeakyReluBackward {
  double slope;
  template <class C>
  __device__ C operator()(C grad, C x) const {
    return x > C(0) ? grad : grad * static_cast<C>(slope);
  }
};

// gelu(x) = x/2 (1 + erf(x / sqrt 2)), or x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
constexpr double kSqrtHalf = 1 / std::numbers::sqrt2;
constexpr double kSqrtTwoOverPi = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
constexpr double kCubic = 0.044715;

struct Gelu {
  template <class C>
  __device__ C operator()(C x) const {
    return C(0.5) * x * (C(1) + std::erf(x * C(kSqrtHalf)));
  }
};
struct GeluBackward {
  template <class C>
  __device__ C operator()(C grad, C x) const {
    const C cdf = C(0.5) * (C(1) + std::erf(x * C(kSqrtHalf)));
    const C pdf = std::exp(C(-0.5) * x * x) * C(kSqrtHalf * std::numbers::inv_sqrtpi);
    return grad * (cdf + x * pdf);
  }
};
struct GeluTanh {
  template <class C>
  __device__ C operator()(C x) const {
    return C(0.5) * x * (C(1) + std::tanh(C(kSqrtTwoOverPi) * (x + C(kCubic) * x * x * x)));
  }
};
struct GeluTanhBackward {
  template <class C>
  __device__ C operator()(C grad, C x) const {
    const C t = std::tanh(C(kSqrtTwoOverPi) * (x + C(kCubic) * x * x * x));
    const C inner = C(kSqrtTwoOverPi) * (C(1) + C(3 * kCubic) * x * x);
    return grad * (C(0.5) * (C(1) + t) + C(0.5) * x * (C(1) - t * t) * inner);
  }
};

struct Tanh {
  template <class C>
  __device__ C operator()(C x) const {
    return std::tanh(x);
  }
};
struct TanhBackward {
  template <class C>
  __device__ C operator()(C grad, C y) const {
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
  __device__ C operator()(C grad, C y) const {
    return grad * y * (C(1) - y);
  }
};

Tensor relu_cuda(const Tensor& x) { return map("relu", x, Relu{}); }
Tensor relu_backward_cuda(const Tensor& grad, const Tensor& y) {
  return map_backward("relu_backward", grad, y, ReluBackward{});
}
Tensor leaky_relu_cuda(const Tensor& x, double slope) { return map("leaky_relu", x, LeakyRelu{slope}); }
Tensor leaky_relu_backward_cuda(const Tensor& grad, const Tensor& x, double slope) {
  return map_backward("leaky_relu_backward", grad, x, LeakyReluBackward{slope});
}
Tensor gelu_cuda(const Tensor& x, bool tanh_approximation) {
  return tanh_approximation ? map("gelu", x, GeluTanh{}) : map("gelu", x, Gelu{});
}
Tensor gelu_backward_cuda(const Tensor& grad, const Tensor& x, bool tanh_approximation) {
  return tanh_approximation ? map_backward("gelu_backward", grad, x, GeluTanhBackward{})
                            : map_backward("gelu_backward", grad, x, GeluBackward{});
}
Tensor tanh_cuda(const Tensor& x) { return map("tanh", x, Tanh{}); }
Tensor tanh_backward_cuda(const Tensor& grad, const Tensor& y) {
  return map_backward("tanh_backward", grad, y, TanhBackward{});
}
Tensor sigmoid_cuda(const Tensor& x) { return map("sigmoid", x, Sigmoid{}); }
Tensor sigmoid_backward_cuda(const Tensor& grad, const Tensor& y) {
  return map_backward("sigmoid_backward", grad, y, SigmoidBackward{});
}
Tensor silu_cuda(const Tensor& x) { return map("silu", x, Silu<Sigmoid>{}); }
Tensor silu_backward_cuda(const Tensor& grad, const Tensor& x) {
  return map_backward("silu_backward", grad, x, SiluBackward<Sigmoid>{});
}

const AddKernel add_relu(relu, kCUDA, &relu_cuda);
const AddKernel add_relu_backward(relu_backward, kCUDA, &relu_backward_cuda);
const AddKernel add_leaky_relu(leaky_relu, kCUDA, &leaky_relu_cuda);
const AddKernel add_leaky_relu_backward(leaky_relu_backward, kCUDA, &leaky_relu_backward_cuda);
const AddKernel add_gelu(gelu, kCUDA, &gelu_cuda);
const AddKernel add_gelu_backward(gelu_backward, kCUDA, &gelu_backward_cuda);
const AddKernel add_tanh(tanh, kCUDA, &tanh_cuda);
const AddKernel add_tanh_backward(tanh_backward, kCUDA, &tanh_backward_cuda);
const AddKernel add_sigmoid(sigmoid, kCUDA, &sigmoid_cuda);
const AddKernel add_sigmoid_backward(sigmoid_backward, kCUDA, &sigmoid_backward_cuda);
const AddKernel add_silu(silu, kCUDA, &silu_cuda);
const AddKernel add_silu_backward(silu_backward, kCUDA, &silu_backward_cuda);

}  // namespace

}  // namespace brigade::kernels
