// CUDA kernels of the activations with parameters. float32 in dense memory has one kernel per kind; other dtypes and
// layouts share a kernel that selects the kind at run time and calls the functions, since inlining ten functions for
// every element would bloat it.
#include <brigade/core/factory.h>
#include <brigade/kernels/common/activation.h>
#include <brigade/kernels/common/elementwise.h>
#include <brigade/kernels/cuda/detail/map.h>

namespace brigade::kernels {
namespace {

struct Math {
  template <class C>
  static __device__ C exp(C x) {
    return std::exp(x);
  }
  template <class C>
  static __device__ C expm1(C x) {
    return std::expm1(x);
  }
  template <class C>
  static __device__ C log1p(C x) {
    return std::log1p(x);
  }
};

using Kinds = std::make_integer_sequence<int, kActivations>;

template <class C>
__device__ __attribute__((noinline)) C called(Activation kind, Parameters<C> with, C x) {
  return any_activation<Math>(kind, with, x, Kinds{});
}
template <class C>
__device__ __attribute__((noinline)) C called_backward(Activation kind, Parameters<C> with, C grad, C x) {
  return any_activation_backward<Math>(kind, with, grad, x, Kinds{});
}
template <class C>
struct AnyActivation {
  Activation kind;
  Parameters<C> with;
  __device__ C operator()(C x) const { return called(kind, with, x); }
  __device__ C operator()(C grad, C x) const { return called_backward(kind, with, grad, x); }
};

Tensor parametric_activation_cuda(const Tensor& x, Activation kind, const ActivationParams& params) {
  constexpr const char* kName = "parametric_activation";
  Tensor out = empty(x.sizes(), x.options());
  visit_floating(x.dtype(), "activation", [&]<class T>() {
    using C = compute_type<T>;
    const Parameters<C> with(params);
    if constexpr (std::is_same_v<T, float>) {
      bool done = false;
      with_activation(kind, [&](auto which) {
        done = cuda::map1_dense<T, T>(kName, x, out, Activate<decltype(which)::value, Math, C>{with});
      });
      if (!done) cuda::map1_strided<T, T>(kName, x, out, AnyActivation<C>{kind, with});
    } else {
      cuda::map1<T, T>(kName, x, out, AnyActivation<C>{kind, with});
    }
  });
  return out;
}

Tensor parametric_activation_backward_cuda(const Tensor& grad, const Tensor& x, Activation kind,
                                           const ActivationParams& params) {
  constexpr const char* kName = "parametric_activation_backward";
  check_gradient_like(grad, x, "activation backward");
  Tensor out = empty(x.sizes(), x.options());
  visit_floating(x.dtype(), "activation backward", [&]<class T>() {
    using C = compute_type<T>;
    const Parameters<C> with(params);
    if constexpr (std::is_same_v<T, float>) {
      bool done = false;
      with_activation(kind, [&](auto which) {
        done = cuda::map2_dense<T, T>(kName, grad, x, out, ActivateBackward<decltype(which)::value, Math, C>{with});
      });
      if (!done) cuda::map2_strided<T, T>(kName, grad, x, out, AnyActivation<C>{kind, with});
    } else {
      cuda::map2<T, T>(kName, grad, x, out, AnyActivation<C>{kind, with});
    }
  });
  return out;
}

const AddKernel add_parametric_activation(parametric_activation, kCUDA, &parametric_activation_cuda);
const AddKernel add_parametric_activation_backward(parametric_activation_backward, kCUDA,
                                                   &parametric_activation_backward_cuda);

}  // namespace
}  // namespace brigade::kernels
