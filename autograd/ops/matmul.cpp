// The nodes of matmul and linear, and of linear fused with a relu or gelu.
#include <brigade/autograd/ops/matmul.h>

#include <brigade/autograd/autocast_mode.h>
#include <brigade/autograd/detail/algebra.h>
#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/ops/activation.h>
#include <brigade/autograd/ops/reduce.h>
#include <brigade/autograd/record.h>
#include <brigade/core/view.h>
#include <brigade/kernels/activation.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/matmul.h>
#include <brigade/kernels/reduce.h>

namespace brigade {
namespace {

using namespace autograd::detail::algebra;
using autograd::detail::located;

// Both at least 2-d.
struct MatmulNode final : Node {
  SavedTensor a, b;

  void backward(BackwardContext& context) override {
    const Tensor& grad = context.grad();
    if (context.needs_input_grad(0)) side(context, 0, grad, b.unpack(*this), false, true);
    if (context.needs_input_grad(1)) side(context, 1, a.unpack(*this), grad, true, false);
  }

 private:
  static void side(BackwardContext& context, uint32_t input, const Tensor& x, const Tensor& y, bool tx, bool ty) {
    if (context.create_graph()) {
      const Tensor left = tx ? x.transpose(-2, -1, {}) : x;
      const Tensor right = ty ? y.transpose(-2, -1, {}) : y;
      context.set_fitted(input, brigade::matmul(left, right, {}));
      return;
    }
    // A gradient that needs no sum over broadcast dimensions can be written directly to its destination.
    if (context.input_sizes(input).size() == 2 && x.dim() == 2 && y.dim() == 2) {
      return context.write(input, [&](const Tensor& out, bool accumulate) {
        return kernels::matmul(x, y, {.transpose_a = tx, .transpose_b = ty, .out = out, .accumulate = accumulate});
      });
    }
    context.set_fitted(input, kernels::matmul(x, y, {.transpose_a = tx, .transpose_b = ty}));
  }
};

Tensor matmul_at_least_2d(const char* op, const Tensor& a, const Tensor& b, SourceLocation where) {
  Tensor y = located(where, [&] { return kernels::matmul(a, b, {}); });
  if (auto* node = record<MatmulNode>({.op = op, .where = where}, {a, b}, y)) {
    if (b.requires_grad()) node->a.save_input(*node, a);
    if (a.requires_grad()) node->b.save_input(*node, b);
  }
  return y;
}

struct LinearNode : Node {
  SavedTensor x, weight;
  Shape x_sizes;

  void backward(BackwardContext& context) override { backward_from(context, context.grad()); }

 protected:
  // Runs backward from the gradient of x weight^T + bias.
  void backward_from(BackwardContext& context, const Tensor& grad_of_sum) {
    if (context.create_graph()) return differentiable(context, grad_of_sum);
    const Tensor grad = kernels::contiguous(grad_of_sum);
    const int64_t out = grad.sizes().back();
    const Tensor rows = view::as_strided(grad, {row_count(), out}, {out, 1}, grad.storage_offset());
    context.write(1, [&](const Tensor& out, bool accumulate) {
      const Tensor input = kernels::contiguous(x.unpack(*this));
      const int64_t in = input.sizes().back();
      const Tensor input_rows = view::as_strided(input, {rows.sizes()[0], in}, {in, 1}, input.storage_offset());
      return kernels::matmul(rows, input_rows, {.transpose_a = true, .out = out, .accumulate = accumulate});
    });
    context.write(2, [&](const Tensor& out, bool accumulate) {
      return kernels::sum(rows, {.dims = {0}, .keepdim = false, .out = out, .accumulate = accumulate});
    });
    if (context.needs_input_grad(0)) {
      const Tensor result = kernels::matmul(rows, weight.unpack(*this), {});
      context.set(0, view::as_strided(result, x_sizes, contiguous_strides(x_sizes), 0));
    }
  }

 private:
  int64_t row_count() const {
    int64_t rows = 1;
    for (int d = 0; d + 1 < x_sizes.size(); ++d)
      rows *= x_sizes[d];
    return rows;
  }
  void differentiable(BackwardContext& context, const Tensor& grad) {
    const int64_t rows = row_count();
    const auto as_rows = [rows](const Tensor& tensor) { return tensor.reshape({rows, tensor.sizes().back()}, {}); };
    if (context.needs_input_grad(1)) {
      context.set(1, brigade::matmul(as_rows(grad).transpose(0, 1, {}), as_rows(x.unpack(*this)), {}));
    }
    if (edges.size() > 2 && context.needs_input_grad(2)) context.set(2, sum_to(grad, {grad.sizes().back()}, {}));
    if (context.needs_input_grad(0))
      context.set(0, brigade::matmul(as_rows(grad), weight.unpack(*this), {}).reshape(x_sizes, {}));
  }
};

struct LinearReluNode final : LinearNode {
  SavedTensor y;
  void backward(BackwardContext& context) override {
    const Tensor result = y.unpack(*this);
    if (context.create_graph()) {
      const Tensor stops =
          kernels::cast(kernels::compare_scalar(result, 0.0, kernels::CompareOp::LessEqual), result.dtype());
      const Tensor passes = kernels::binary_scalar(stops, 1.0, kernels::BinaryOp::Sub, true);  // a NaN too
      backward_from(context, context.grad() * passes);
      return;
    }
    backward_from(context, kernels::relu_backward(context.grad(), result));
  }
};
struct LinearGeluNode final : LinearNode {
  SavedTensor pre;
  SavedTensor bias;  // with x and weight, to recompute `pre` as a function of them
  void backward(BackwardContext& context) override {
    if (context.create_graph()) {
      const Tensor again = brigade::linear(x.unpack(*this), weight.unpack(*this), bias.unpack(*this), {});
      backward_from(context, context.grad() * autograd::detail::gelu_tanh_derivative(again));
      return;
    }
    backward_from(context, kernels::gelu_backward(context.grad(), pre.unpack(*this), true));
  }
};

// The inputs of linear as record() takes them.
class LinearInputs {
 public:
  LinearInputs(const Tensor& x, const Tensor& weight, const Tensor& bias) noexcept
      : inputs_{&x, &weight, &bias}, count_(bias.defined() ? 3 : 2) {}

  autograd::TensorRefs refs() const noexcept { return {inputs_, count_}; }
  bool will_be_recorded() const {
    return autograd::GradMode::is_enabled() && autograd::detail::any_requires_grad(refs());
  }
  // Records a node with the tensors that every linear layer saves for its backward.
  template <class N>
  N* record(const autograd::OpInfo& info, const Tensor& y) const {
    const Tensor& x = *inputs_[0];
    const Tensor& weight = *inputs_[1];
    const Tensor* outputs[] = {&y};
    N* node = autograd::record<N>(info, refs(), outputs);
    if (!node) return nullptr;
    node->x_sizes = x.sizes();
    if (weight.requires_grad()) node->x.save_input(*node, x);
    if (x.requires_grad()) node->weight.save_input(*node, weight);
    return node;
  }

 private:
  const Tensor* inputs_[3];
  size_t count_;
};

// linear() takes a weight [in] as well: a product with a vector, whose bias is a single number.
bool is_by_vector(const Tensor& x, const Tensor& weight) {
  return weight.dim() == 1 && x.dim() >= 1 && x.sizes().back() == weight.sizes()[0];
}
[[gnu::cold]] Tensor by_vector(const Tensor& x, const Tensor& weight, const Tensor& bias, SourceLocation where) {
  if (bias.defined() && bias.dim() != 0)
    throw ShapeError(where, "linear: expected a bias [] for a weight {}, got {}", weight.sizes(), describe(bias));
  const Tensor y = matmul(x, weight, where);
  return bias.defined() ? y + bias : y;
}

void check_dims(const Tensor& x, int dims, const char* what, SourceLocation where) {
  if (x.dim() == dims) return;
  throw ShapeError(where, "{}: expected tensors with {} dimensions, got {}", what, dims, x.sizes());
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"matmul">(where, a, b)) return matmul(in[0], in[1], where);
  }
  if (a.dim() == 0 || b.dim() == 0) {
    throw ShapeError(where, "matmul: both arguments need at least 1 dimension, got {} and {}", a.sizes(), b.sizes());
  }
  if (a.dim() >= 2 && b.dim() >= 2) return matmul_at_least_2d("matmul", a, b, where);
  const Tensor left = a.dim() == 1 ? a.unsqueeze(0, where) : a;
  const Tensor right = b.dim() == 1 ? b.unsqueeze(1, where) : b;
  Tensor y = matmul_at_least_2d("matmul", left, right, where);
  if (b.dim() == 1) y = y.squeeze(-1, where);
  if (a.dim() == 1) y = y.squeeze(b.dim() == 1 ? -1 : -2, where);
  return y;
}

Tensor mm(const Tensor& a, const Tensor& b, SourceLocation where) {
  check_dims(a, 2, "mm", where);
  check_dims(b, 2, "mm", where);
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"mm">(where, a, b)) return matmul_at_least_2d("mm", in[0], in[1], where);
  }
  return matmul_at_least_2d("mm", a, b, where);
}

Tensor bmm(const Tensor& a, const Tensor& b, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"bmm">(where, a, b)) return bmm(in[0], in[1], where);
  }
  check_dims(a, 3, "bmm", where);
  check_dims(b, 3, "bmm", where);
  if (a.sizes()[0] != b.sizes()[0]) {
    throw ShapeError(where, "bmm: expected equal batches, got {} and {}", a.sizes(), b.sizes());
  }
  return matmul_at_least_2d("bmm", a, b, where);
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"linear">(where, x, weight, bias))
      return linear(in[0], in[1], in[2], where);
  }
  if (is_by_vector(x, weight)) [[unlikely]]
    return by_vector(x, weight, bias, where);
  Tensor y = located(where, [&] { return kernels::linear(x, weight, bias); });
  LinearInputs(x, weight, bias).record<LinearNode>({.op = "linear", .where = where}, y);
  return y;
}

Tensor linear_relu(const Tensor& x, const Tensor& weight, const Tensor& bias, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"linear_relu">(where, x, weight, bias))
      return linear_relu(in[0], in[1], in[2], where);
  }
  if (is_by_vector(x, weight)) [[unlikely]]
    return relu(by_vector(x, weight, bias, where), where);
  const Tensor y = located(
      where, [&] { return kernels::linear_activation(x, weight, bias, kernels::FusedActivation::Relu, false).y; });
  const LinearInputs inputs(x, weight, bias);
  if (auto* node = inputs.record<LinearReluNode>({.op = "linear_relu", .where = where}, y)) {
    node->y.save_output(*node, y);
  }
  return y;
}

Tensor linear_gelu(const Tensor& x, const Tensor& weight, const Tensor& bias, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"linear_gelu">(where, x, weight, bias))
      return linear_gelu(in[0], in[1], in[2], where);
  }
  if (is_by_vector(x, weight)) [[unlikely]]
    return gelu(by_vector(x, weight, bias, where), GeluApproximation::Tanh, where);
  const LinearInputs inputs(x, weight, bias);
  const kernels::LinearActivation result = located(where, [&] {
    return kernels::linear_activation(x, weight, bias, kernels::FusedActivation::GeluTanh, inputs.will_be_recorded());
  });
  if (auto* node = inputs.record<LinearGeluNode>({.op = "linear_gelu", .where = where}, result.y)) {
    node->pre.save_input(*node, result.pre);
    node->bias.save_input(*node, bias);
    if (!weight.requires_grad()) node->x.save_input(*node, x);
    if (!x.requires_grad()) node->weight.save_input(*node, weight);
  }
  return result.y;
}

}  // namespace brigade
