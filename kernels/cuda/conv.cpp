// CUDA kernels of conv.h: make the tensors dense and aligned, then call convolution() once.
#include <brigade/core/factory.h>
#include <brigade/kernels/cuda/detail/conv_library.h>
#include <brigade/kernels/elementwise.h>

namespace brigade::kernels {
namespace {

using cuda::convolution;
using cuda::ConvolutionPass;

bool is_aligned(const Tensor& x) {
  return reinterpret_cast<uintptr_t>(x.raw_data()) % cuda::kConvolutionAlignment == 0;
}
Tensor dense(const Tensor& x) { return x.is_contiguous() && is_aligned(x) ? x : clone(x); }

Tensor conv2d_cuda(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dParams& params) {
  const ConvPlan plan = prepare_conv2d(x, weight, bias, params);
  if (plan.done) return plan.result;
  const Tensor input = dense(x);
  const Tensor filter = dense(weight);
  const Tensor shift = bias.defined() ? dense(bias) : Tensor();
  convolution({.pass = ConvolutionPass::Forward,
               .shape = plan.shape,
               .dtype = x.dtype(),
               .a = input.raw_data(),
               .b = filter.raw_data(),
               .result = plan.result.raw_data(),
               .bias = shift.defined() ? shift.raw_data() : nullptr},
              x.device());
  return plan.result;
}

Tensor conv2d_backward_input_cuda(const Tensor& grad, const Tensor& weight, const Tensor& bias, const Shape& x_sizes,
                                  const Conv2dParams& params) {
  const ConvPlan plan = prepare_conv2d_backward_input(grad, weight, bias, x_sizes, params);
  if (plan.done) return plan.result;
  const Tensor g = dense(grad);
  const Tensor filter = dense(weight);
  convolution({.pass = ConvolutionPass::BackwardInput,
               .shape = plan.shape,
               .dtype = grad.dtype(),
               .a = g.raw_data(),
               .b = filter.raw_data(),
               .result = plan.result.raw_data()},
              grad.device());
  if (bias.defined()) add_channel_bias(plan.result, bias);
  return plan.result;
}

Tensor conv2d_backward_weight_cuda(const Tensor& grad, const Tensor& x, const Shape& weight_sizes,
                                   const Conv2dParams& params, const Tensor& out, bool accumulate) {
  const ConvPlan plan = prepare_conv2d_backward_weight(grad, x, weight_sizes, params, out, accumulate);
  if (plan.done) return plan.result;
  const Tensor g = dense(grad);
  const Tensor input = dense(x);
  // A gradient inside a bucket may have any alignment.
  const bool direct = is_aligned(plan.result);
  const Tensor target = direct ? plan.result : empty(weight_sizes, grad.options());
  convolution({.pass = ConvolutionPass::BackwardWeight,
               .shape = plan.shape,
               .dtype = grad.dtype(),
               .a = g.raw_data(),
               .b = input.raw_data(),
               .result = target.raw_data(),
               .accumulate = direct && plan.accumulate},
              grad.device());
  if (direct) return plan.result;
  if (plan.accumulate) {
    add_inplace(plan.result, target, 1.0);
  } else {
    copy(plan.result, target);
  }
  return plan.result;
}

const AddKernel add_conv2d(conv2d, kCUDA, &conv2d_cuda);
const AddKernel add_conv2d_backward_input(conv2d_backward_input, kCUDA, &conv2d_backward_input_cuda);
const AddKernel add_conv2d_backward_weight(conv2d_backward_weight, kCUDA, &conv2d_backward_weight_cuda);

}  // namespace
}  // namespace brigade::kernels
