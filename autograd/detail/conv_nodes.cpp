// The nodes of the three maps; a 1-d convolution runs as a 2-d one whose first spatial size is 1.
#include <brigade/autograd/detail/conv_nodes.h>

#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/ops/reduce.h>
#include <brigade/core/view.h>
#include <brigade/kernels/common/conv.h>
#include <brigade/kernels/reduce.h>

namespace brigade::autograd::detail {
namespace {

using kernels::Conv2dParams;

// --- 1-d as 2-d, and a single image as a batch

Shape lifted_weight(const Shape& weight) {
  return weight.size() == 3 ? Shape{weight[0], weight[1], 1, weight[2]} : weight;
}
Tensor lift_weight(const Tensor& weight) { return weight.dim() == 3 ? view::unsqueeze(weight, 2) : weight; }

Shape lifted(const Shape& x, int spatial) {
  const int first = x.size() - spatial;  // the first of the spatial dimensions
  return {first == 2 ? x[0] : 1, x[first - 1], spatial == 2 ? x[first] : 1, x[x.size() - 1]};
}
Tensor lift(const Tensor& x, int spatial) {
  const Tensor batch = x.dim() == spatial + 1 ? view::unsqueeze(x, 0) : x;
  return spatial == 1 ? view::unsqueeze(batch, 2) : batch;
}
// `y` with as many dimensions as `like` has.
Tensor lower(const Tensor& y, const Shape& like, int spatial) {
  const Tensor batch = spatial == 1 ? view::squeeze(y, 2) : y;
  return like.size() == spatial + 1 ? view::squeeze(batch, 0) : batch;
}

// --- not recorded

Tensor apply(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dParams& params) {
  const int spatial = weight.dim() - 2;
  return lower(kernels::conv2d(lift(x, spatial), lift_weight(weight), bias, params), x.sizes(), spatial);
}

Tensor apply_backward_input(const Tensor& grad, const Tensor& weight, const Tensor& bias, const Shape& x_sizes,
                            const Conv2dParams& params) {
  const int spatial = weight.dim() - 2;
  const Tensor x =
      kernels::conv2d_backward_input(lift(grad, spatial), lift_weight(weight), bias, lifted(x_sizes, spatial), params);
  return lower(x, x_sizes, spatial);
}

Tensor apply_backward_weight(const Tensor& grad, const Tensor& x, const Shape& weight_sizes, const Conv2dParams& params,
                             const Tensor& out = {}, bool accumulate = false) {
  const int spatial = weight_sizes.size() - 2;
  const Tensor weight =
      kernels::conv2d_backward_weight(lift(grad, spatial), lift(x, spatial), lifted_weight(weight_sizes), params,
                                      out.defined() ? lift_weight(out) : Tensor(), accumulate);
  return spatial == 1 ? view::squeeze(weight, 2) : weight;
}

// --- gradients

OpInfo backward_input_info(const Node& node) { return {.op = "conv_backward_input", .where = node.where}; }
OpInfo backward_weight_info(const Node& node) { return {.op = "conv_backward_weight", .where = node.where}; }

Tensor input_gradient(const BackwardContext& context, const Node& node, const Tensor& grad, const Tensor& weight,
                      const Shape& x_sizes, const Conv2dParams& params) {
  return context.create_graph()
             ? convolution_backward_input(backward_input_info(node), grad, weight, {}, x_sizes, params)
             : apply_backward_input(grad, weight, {}, x_sizes, params);
}

Tensor output_gradient(const BackwardContext& context, const Node& node, const char* op, const Tensor& x,
                       const Tensor& weight, const Conv2dParams& params) {
  return context.create_graph() ? convolution({.op = op, .where = node.where}, x, weight, {}, params)
                                : apply(x, weight, {}, params);
}

void set_weight_gradient(BackwardContext& context, const Node& node, uint32_t input, const Tensor& grad,
                         const Tensor& x, const Shape& weight_sizes, const Conv2dParams& params) {
  if (context.create_graph()) {
    context.set(input, convolution_backward_weight(backward_weight_info(node), grad, x, weight_sizes, params));
    return;
  }
  context.write(input, [&](const Tensor& out, bool accumulate) {
    return apply_backward_weight(grad, x, weight_sizes, params, out, accumulate);
  });
}

// Sums `grad` over all dimensions except the channels.
void set_bias_gradient(BackwardContext& context, uint32_t input, const Tensor& grad, int spatial) {
  if (context.create_graph()) {
    Shape dims;
    for (int d = 0; d < grad.dim(); ++d) {
      if (d != grad.dim() - spatial - 1) dims.push_back(d);
    }
    context.set(input, sum(grad, dims, false, {}));
    return;
  }
  context.write(input, [&](const Tensor& out, bool accumulate) {
    return kernels::sum(lift(grad, spatial),
                        {.dims = {0, 2, 3}, .keepdim = false, .out = out, .accumulate = accumulate});
  });
}

struct ConvolutionNode final : Node {
  SavedTensor x, weight;
  Shape x_sizes, weight_sizes;
  Conv2dParams params;

  void backward(BackwardContext& context) override {
    const Tensor& grad = context.grad();
    if (context.needs_input_grad(1))
      set_weight_gradient(context, *this, 1, grad, x.unpack(*this), weight_sizes, params);
    if (context.needs_input_grad(2)) set_bias_gradient(context, 2, grad, weight_sizes.size() - 2);
    if (context.needs_input_grad(0))
      context.set(0, input_gradient(context, *this, grad, weight.unpack(*this), x_sizes, params));
  }
};

struct BackwardInputNode final : Node {
  SavedTensor grad, weight;
  Shape weight_sizes;
  Conv2dParams params;

  void backward(BackwardContext& context) override {
    const Tensor& slope = context.grad();  // has the shape of x
    if (context.needs_input_grad(1))
      set_weight_gradient(context, *this, 1, grad.unpack(*this), slope, weight_sizes, params);
    if (context.needs_input_grad(2)) set_bias_gradient(context, 2, slope, weight_sizes.size() - 2);
    if (context.needs_input_grad(0))
      context.set(0, output_gradient(context, *this, weight_sizes.size() == 3 ? "conv1d" : "conv2d", slope,
                                     weight.unpack(*this), params));
  }
};

struct BackwardWeightNode final : Node {
  SavedTensor grad, x;
  Shape x_sizes;
  Conv2dParams params;

  void backward(BackwardContext& context) override {
    const Tensor& slope = context.grad();  // has the shape of weight
    if (context.needs_input_grad(0))
      context.set(
          0, output_gradient(context, *this, slope.dim() == 3 ? "conv1d" : "conv2d", x.unpack(*this), slope, params));
    if (context.needs_input_grad(1))
      context.set(1, input_gradient(context, *this, grad.unpack(*this), slope, x_sizes, params));
  }
};

}  // namespace

Tensor convolution(const OpInfo& info, const Tensor& x, const Tensor& weight, const Tensor& bias,
                   const Conv2dParams& params) {
  Tensor y = located(info.where, [&] { return apply(x, weight, bias, params); });
  const Tensor* inputs[] = {&x, &weight, &bias};
  const Tensor* outputs[] = {&y};
  if (auto* node = record<ConvolutionNode>(info, TensorRefs(inputs, bias.defined() ? 3 : 2), outputs)) {
    node->x_sizes = x.sizes();
    node->weight_sizes = weight.sizes();
    node->params = params;
    if (weight.requires_grad()) node->x.save_input(*node, x);
    if (x.requires_grad()) node->weight.save_input(*node, weight);
  }
  return y;
}

Tensor convolution_backward_input(const OpInfo& info, const Tensor& grad, const Tensor& weight, const Tensor& bias,
                                  const Shape& x_sizes, const Conv2dParams& params) {
  Tensor x = located(info.where, [&] { return apply_backward_input(grad, weight, bias, x_sizes, params); });
  const Tensor* inputs[] = {&grad, &weight, &bias};
  const Tensor* outputs[] = {&x};
  if (auto* node = record<BackwardInputNode>(info, TensorRefs(inputs, bias.defined() ? 3 : 2), outputs)) {
    node->weight_sizes = weight.sizes();
    node->params = params;
    if (weight.requires_grad()) node->grad.save_input(*node, grad);
    if (grad.requires_grad()) node->weight.save_input(*node, weight);
  }
  return x;
}

Tensor convolution_backward_weight(const OpInfo& info, const Tensor& grad, const Tensor& x, const Shape& weight_sizes,
                                   const Conv2dParams& params) {
  Tensor weight = located(info.where, [&] { return apply_backward_weight(grad, x, weight_sizes, params); });
  if (auto* node = record<BackwardWeightNode>(info, {grad, x}, weight)) {
    node->x_sizes = x.sizes();
    node->params = params;
    if (x.requires_grad()) node->grad.save_input(*node, grad);
    if (grad.requires_grad()) node->x.save_input(*node, x);
  }
  return weight;
}

}  // namespace brigade::autograd::detail
