#include <brigade/autograd/ops/matmul.h>

#include <brigade/autograd/detail/located.h>
#include <brigade/autograd/ops/reduce.h>
#include <brigade/autograd/record.h>
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/matmul.h>
#include <brigade/kernels/reduce.h>

namespace brigade {

namespace {

using autograd::BackwardContext;
using autograd::Node;
using autograd::record;
using autograd::SavedTensor;
using autograd::detail::located;

// Both at least 2-d.
struct MatmulNode final : Node {
  SavedTensor a, b;
  Shape a_sizes, b_sizes;

  void backward(BackwardContext& context) override {
    const Tensor& grad = context.grad();
    if (context.needs_input_grad(0)) side(context, 0, a_sizes, grad, b.unpack(*this), false, true);
    if (context.needs_input_grad(1)) side(context, 1, b_sizes, a.unpack(*this), grad, true, false);
  }

 private:
  static void side(BackwardContext& context, uint32_t input, const Shape& sizes, const Tensor& x, const Tensor& y,
                   bool tx, bool ty) {
    // A gradient that needs no sum over broadcast dimensions can be born where it belongs.
    if (sizes.size() == x.dim() && sizes.size() == y.dim() && sizes.size() == 2) {
      if (const auto destination = context.destination(input); destination.out.defined()) {
        kernels::matmul(
            x, y, {.transpose_a = tx, .transpose_b = ty, .out = destination.out, .accumulate = destination.accumulate});
        context.set_written(input);
        return;
      }
    }
    context.set(input, sum_to(kernels::matmul(x, y, {.transpose_a = tx, .transpose_b = ty}), sizes, {}));
  }
};

Tensor matmul_at_least_2d(const char* op, const Tensor& a, const Tensor& b, SourceLocation where) {
  Tensor y = located(where, [&] { return kernels::matmul(a, b, {}); });
  if (auto* node = record<MatmulNode>({.op = op, .where = where}, {a, b}, y)) {
    node->a_sizes = a.sizes();
    node->b_sizes = b.sizes();
    if (b.requires_grad()) node->a.save_input(*node, a);
    if (a.requires_grad()) node->b.save_input(*node, b);
  }
  return y;
}

struct LinearNode final : Node {
  SavedTensor x, weight;
  Shape x_sizes;

  void backward(BackwardContext& context) override {
    const Tensor grad = kernels::contiguous(context.grad());
    const int64_t out = grad.sizes().back();
    const Tensor rows =
        view::as_strided(grad, {out == 0 ? 0 : grad.numel() / out, out}, {out, 1}, grad.storage_offset());
    if (context.needs_input_grad(1)) {
      const Tensor input = kernels::contiguous(x.unpack(*this));
      const int64_t in = input.sizes().back();
      const Tensor input_rows = view::as_strided(input, {rows.sizes()[0], in}, {in, 1}, input.storage_offset());
      const auto destination = context.destination(1);
      const Tensor result = kernels::matmul(
          rows, input_rows, {.transpose_a = true, .out = destination.out, .accumulate = destination.accumulate});
      if (destination.out.defined()) {
        context.set_written(1);
      } else {
        context.set(1, result);
      }
    }
    if (edges.size() > 2 && context.needs_input_grad(2)) {
      const auto destination = context.destination(2);
      const Tensor result = kernels::sum(
          rows, {.dims = {0}, .keepdim = false, .out = destination.out, .accumulate = destination.accumulate});
      if (destination.out.defined()) {
        context.set_written(2);
      } else {
        context.set(2, result);
      }
    }
    if (context.needs_input_grad(0)) {
      const Tensor result = kernels::matmul(rows, weight.unpack(*this), {});
      context.set(0, view::as_strided(result, x_sizes, contiguous_strides(x_sizes), 0));
    }
  }
};

void check_dims(const Tensor& x, int dims, const char* what, SourceLocation where) {
  if (x.dim() == dims) return;
  throw ShapeError(std::string(what) + ": expected tensors with " + std::to_string(dims) + " dimensions, got " +
                       to_string(x.sizes()) + " (called at " + to_string(where) + ")",
                   where);
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, SourceLocation where) {
  if (a.dim() == 0 || b.dim() == 0) {
    throw ShapeError("matmul: both arguments need at least 1 dimension, got " + to_string(a.sizes()) + " and " +
                         to_string(b.sizes()) + " (called at " + to_string(where) + ")",
                     where);
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
  return matmul_at_least_2d("mm", a, b, where);
}

Tensor bmm(const Tensor& a, const Tensor& b, SourceLocation where) {
  check_dims(a, 3, "bmm", where);
  check_dims(b, 3, "bmm", where);
  if (a.sizes()[0] != b.sizes()[0]) {
    throw ShapeError("bmm: expected equal batches, got " + to_string(a.sizes()) + " and " + to_string(b.sizes()) +
                         " (called at " + to_string(where) + ")",
                     where);
  }
  return matmul_at_least_2d("bmm", a, b, where);
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, SourceLocation where) {
  Tensor y = located(where, [&] { return kernels::linear(x, weight, bias); });
  const Tensor* inputs[] = {&x, &weight, &bias};
  const Tensor* outputs[] = {&y};
  const autograd::TensorRefs used(inputs, bias.defined() ? 3 : 2);
  if (auto* node = record<LinearNode>({.op = "linear", .where = where}, used, outputs)) {
    node->x_sizes = x.sizes();
    if (weight.requires_grad()) node->x.save_input(*node, x);
    if (x.requires_grad()) node->weight.save_input(*node, weight);
  }
  return y;
}

}  // namespace brigade
