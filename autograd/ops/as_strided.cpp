// The nodes of as_strided, its backward and its scatter, each differentiated by the others.
#include <brigade/autograd/views.h>

#include <brigade/autograd/record.h>
#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/reduce.h>

namespace brigade::autograd {
namespace {

// The number of elements from the first of the base to its last.
int64_t extent(const StridedPart& part) {
  if (part.base_sizes.numel() == 0) return 0;
  int64_t last = 0;
  for (int d = 0; d < part.base_sizes.size(); ++d)
    last += (part.base_sizes[d] - 1) * part.base_strides[d];
  return last + 1;
}

Tensor in_base(const Tensor& memory, const StridedPart& part) {
  return view::as_strided(memory, part.base_sizes, part.base_strides, memory.storage_offset());
}
Tensor in_part(const Tensor& memory, const StridedPart& part, const Shape& sizes) {
  return view::as_strided(memory, sizes, part.strides, memory.storage_offset() + part.offset);
}

// A copy of x in memory laid out like the base.
Tensor copy_in_layout(const Tensor& x, const StridedPart& part) {
  Tensor memory = empty({extent(part)}, x.options());
  kernels::copy(in_base(memory, part), x);
  return memory;
}

struct AsStridedBackwardNode final : Node {
  StridedPart part;
  void backward(BackwardContext& context) override { context.set(0, as_strided(context.grad(), part, {})); }
};

struct AsStridedScatterNode final : Node {
  StridedPart part;
  void backward(BackwardContext& context) override {
    const Tensor& grad = context.grad();
    if (context.needs_input_grad(0))
      context.set(0, as_strided_scatter(grad, zeros(part.sizes, grad.options()), part, {}));
    if (context.needs_input_grad(1)) context.set(1, as_strided(grad, part, {}));
  }
};

}  // namespace

void AsStridedNode::backward(BackwardContext& context) {
  context.set(0, as_strided_backward(context.grad(), part, {}));
}

StridedPart StridedPart::of(const TensorImpl& view, const TensorImpl& base) {
  return {base.sizes, base.strides, view.sizes, view.strides, view.offset - base.offset};
}

Tensor as_strided(const Tensor& x, const StridedPart& part, SourceLocation where) {
  const bool same_layout = x.strides() == part.base_strides;
  const Tensor memory = same_layout ? x : copy_in_layout(x, part);
  Tensor y = kernels::clone(in_part(memory, part, part.sizes));
  if (auto* node = record<AsStridedNode>({.op = "as_strided", .where = where}, {x}, y)) node->part = part;
  return y;
}

Tensor as_strided_backward(const Tensor& x, const StridedPart& part, SourceLocation where) {
  Shape once = part.sizes;
  for (int d = 0; d < once.size(); ++d) {
    if (part.strides[d] == 0 && once[d] > 1) once[d] = 1;
  }
  Tensor memory = empty({extent(part)}, x.options());
  kernels::fill(memory, 0.0);
  if (x.numel() > 0) kernels::copy(in_part(memory, part, once), once == x.sizes() ? x : kernels::sum_to(x, once));
  Tensor y = in_base(memory, part);
  if (auto* node = record<AsStridedBackwardNode>({.op = "as_strided_backward", .where = where}, {x}, y))
    node->part = part;
  return y;
}

Tensor as_strided_scatter(const Tensor& x, const Tensor& source, const StridedPart& part, SourceLocation where) {
  const Tensor memory = copy_in_layout(x, part);
  kernels::copy(in_part(memory, part, part.sizes), source);
  Tensor y = in_base(memory, part);
  if (auto* node = record<AsStridedScatterNode>({.op = "as_strided_scatter", .where = where}, {x, source}, y))
    node->part = part;
  return y;
}

}  // namespace brigade::autograd
