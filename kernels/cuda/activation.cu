// CUDA kernels of activation.h: one pass over memory each, with the functions of the CUDA math library.
#include <brigade/kernels/activation.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/common/activation.h>
#include <brigade/kernels/common/elementwise.h>
#include <brigade/kernels/cuda/detail/map.h>

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
Tensor silu_cuda(const Tensor& x) { return map("silu", x, Silu{}); }
Tensor silu_backward_cuda(const Tensor& grad, const Tensor& x) {
  return map_backward("silu_backward", grad, x, SiluBackward{});
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
