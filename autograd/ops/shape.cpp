// The nodes of reshape, permute, expand, slice, clone and casts, and the views that they record.
#include <brigade/autograd/ops/shape.h>

#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/ops/reduce.h>
#include <brigade/autograd/record.h>
#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>

#include <algorithm>

namespace brigade {
namespace {

using namespace autograd;
using namespace autograd::detail;

// The same elements in another shape: the gradient gets the old shape.
struct ReshapeNode final : Node {
  Shape sizes;
  void backward(BackwardContext& context) override { context.set(0, context.grad().reshape(sizes, {})); }
};

struct PermuteNode final : Node {
  Shape inverse;
  void backward(BackwardContext& context) override { context.set(0, context.grad().permute(inverse, {})); }
};

struct ExpandNode final : Node {
  Shape sizes;
  void backward(BackwardContext& context) override { context.set(0, sum_to(context.grad(), sizes, {})); }
};

// Elements start, start + step, ... of a dimension of `sizes`.
struct SlicedPart {
  Shape sizes;
  int dim = 0;
  int64_t start = 0, end = 0, step = 1;
};

// The gradient of a slice: zeros of the old shape with the gradient where the slice was.
Tensor slice_backward(const Tensor& grad, const SlicedPart& part);

struct SliceNode final : Node {
  SlicedPart part;
  void backward(BackwardContext& context) override { context.set(0, slice_backward(context.grad(), part)); }
};

struct SliceBackwardNode final : Node {
  SlicedPart part;
  void backward(BackwardContext& context) override {
    context.set(0, context.grad().slice(part.dim, part.start, part.end, part.step, {}));
  }
};

Tensor slice_backward(const Tensor& grad, const SlicedPart& part) {
  Tensor result = empty(part.sizes, grad.options());
  kernels::fill(result, 0.0);
  kernels::copy(view::slice(result, part.dim, part.start, part.end, part.step), grad);
  if (auto* node = record<SliceBackwardNode>({.op = "slice_backward"}, {grad}, result)) node->part = part;
  return result;
}

struct CloneNode final : Node {
  void backward(BackwardContext& context) override { context.set(0, context.grad()); }
};

struct CastNode final : Node {
  DType dtype = DType::Float32;
  void backward(BackwardContext& context) override {
    const Tensor& grad = context.grad();
    if (context.create_graph()) return context.set(0, grad.to(dtype, {}));
    // Under autocast the input is a parameter: write its gradient directly to its destination.
    context.write(0, [&](const Tensor& out, bool accumulate) {
      if (!out.defined()) return kernels::cast(grad, dtype);
      if (accumulate) {
        kernels::add_inplace(out, grad, 1.0);
      } else {
        kernels::copy(out, grad);
      }
      return out;
    });
  }
};

struct ToDeviceNode final : Node {
  Device device;
  void backward(BackwardContext& context) override { context.set(0, context.grad().to(device, {})); }
};

Tensor viewed(const char* op, const Tensor& x, Tensor y, SourceLocation where) {
  if (auto* node = record<ReshapeNode>({.op = op, .where = where}, {x}, y)) node->sizes = x.sizes();
  autograd::mark_view(y, x);
  return y;
}

}  // namespace

Tensor Tensor::reshape(const Shape& shape, SourceLocation where) const {
  const Shape target = located("reshape", where, [&] { return view::infer_sizes(shape, numel()); });
  const auto new_strides = view::reshape_strides(*this, target);
  if (new_strides)
    return viewed("reshape", *this, view::as_strided(*this, target, *new_strides, storage_offset()), where);
  const Tensor copy = kernels::clone(*this);
  Tensor y = view::as_strided(copy, target, contiguous_strides(target), 0);
  if (auto* node = record<ReshapeNode>({.op = "reshape", .where = where}, {*this}, y)) node->sizes = sizes();
  return y;
}

Tensor Tensor::view(const Shape& shape, SourceLocation where) const {
  const Shape target = located("view", where, [&] { return view::infer_sizes(shape, numel()); });
  const auto new_strides = view::reshape_strides(*this, target);
  if (!new_strides) {
    throw ShapeError(where,
                     "view size is not compatible with input tensor's size and stride: {} with strides {} as {}; use "
                     "reshape()",
                     sizes(), strides(), shape);
  }
  return viewed("view", *this, view::as_strided(*this, target, *new_strides, storage_offset()), where);
}

Tensor Tensor::flatten(int64_t start_dim, int64_t end_dim, SourceLocation where) const {
  const int dims = std::max(dim(), 1);
  const int first = dimension_of("flatten", start_dim, dims, where);
  const int last = dimension_of("flatten", end_dim, dims, where);
  if (dim() == 0) return reshape({1}, where);
  if (first > last) throw ShapeError("flatten: start_dim must not come after end_dim", where);
  if (first == last) return *this;
  Shape shape;
  Size product(1);
  for (int d = 0; d < dim(); ++d) {
    if (d < first || d > last) {
      shape.push_back(sizes()[d]);
      continue;
    }
    product *= sizes()[d];
    if (d == last) shape.push_back(product.value());
  }
  return reshape(shape, where);
}

Tensor Tensor::permute(const Shape& dims, SourceLocation where) const {
  Tensor y = located("permute", where, [&] { return view::permute(*this, dims); });
  if (auto* node = record<PermuteNode>({.op = "permute", .where = where}, {*this}, y)) {
    node->inverse = dims;
    for (int d = 0; d < dims.size(); ++d)
      node->inverse[wrap_dim(dims[d], dim())] = d;
  }
  autograd::mark_view(y, *this);
  return y;
}

Tensor Tensor::transpose(int64_t dim0, int64_t dim1, SourceLocation where) const {
  Shape dims;
  for (int d = 0; d < dim(); ++d)
    dims.push_back(d);
  const int a = dimension_of("transpose", dim0, dim(), where);
  const int b = dimension_of("transpose", dim1, dim(), where);
  if (dim() > 0) std::swap(dims[a], dims[b]);
  Tensor y = view::transpose(*this, a, b);
  if (auto* node = record<PermuteNode>({.op = "transpose", .where = where}, {*this}, y)) node->inverse = dims;
  autograd::mark_view(y, *this);
  return y;
}

Tensor Tensor::t(SourceLocation where) const {
  if (dim() > 2) {
    throw ShapeError(where, "t() expects a tensor with <= 2 dimensions, but self is {}D: {}; use transpose", dim(),
                     sizes());
  }
  if (dim() == 2) return transpose(0, 1, where);
  return permute(Shape::filled(dim(), 0), where);  // unchanged
}

Tensor Tensor::expand(const Shape& shape, SourceLocation where) const {
  Tensor y = located("expand", where, [&] { return view::expand(*this, shape); });
  if (auto* node = record<ExpandNode>({.op = "expand", .where = where}, {*this}, y)) node->sizes = sizes();
  autograd::mark_view(y, *this);
  return y;
}

Tensor Tensor::unsqueeze(int64_t dim, SourceLocation where) const {
  return viewed("unsqueeze", *this, located("unsqueeze", where, [&] { return view::unsqueeze(*this, dim); }), where);
}

Tensor Tensor::squeeze(int64_t dim, SourceLocation where) const {
  return viewed("squeeze", *this, located("squeeze", where, [&] { return view::squeeze(*this, dim); }), where);
}

Tensor Tensor::squeeze(SourceLocation where) const {
  Tensor y = *this;
  for (int d = dim() - 1; d >= 0; --d) {
    if (size(d) == 1) y = y.squeeze(d, where);
  }
  return y;
}

Tensor Tensor::slice(int64_t dim, int64_t start, int64_t end, int64_t step, SourceLocation where) const {
  Tensor y = located("slice", where, [&] { return view::slice(*this, dim, start, end, step); });
  if (auto* node = record<SliceNode>({.op = "slice", .where = where}, {*this}, y)) {
    const int at = wrap_dim(dim, this->dim());
    const int64_t size = sizes()[at];
    const auto inside = [size](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size); };
    node->part = {sizes(), at, inside(start), inside(end), step};
  }
  autograd::mark_view(y, *this);
  return y;
}

Tensor Tensor::narrow(int64_t dim, int64_t start, int64_t length, SourceLocation where) const {
  const int64_t size = located("narrow", where, [&] { return this->size(dim); });
  const int64_t first = start < 0 ? start + size : start;
  if (first < 0 || first > size || length < 0 || length > size - first) {
    throw IndexError(where, "narrow: start {} and length {} exceed dimension {} of size {}", start, length, dim, size);
  }
  return slice(dim, first, first + length, 1, where);
}

Tensor Tensor::select(int64_t dim, int64_t index, SourceLocation where) const {
  located("select", where, [&] { view::select(*this, dim, index); });  // throws for a bad index
  const int at = wrap_dim(dim, this->dim());
  const int64_t first = index < 0 ? index + sizes()[at] : index;
  return slice(at, first, first + 1, 1, where).squeeze(at, where);
}

Tensor Tensor::clone(SourceLocation where) const {
  Tensor y = kernels::clone(*this);
  autograd::note_copy(*this);
  record<CloneNode>({.op = "clone", .where = where}, {*this}, y);
  return y;
}

Tensor Tensor::contiguous(SourceLocation where) const { return is_contiguous() ? *this : clone(where); }

Tensor autograd::detail::cast(const char* op, const Tensor& x, DType dtype, SourceLocation where) {
  if (dtype == x.dtype()) return x;
  Tensor y = kernels::cast(x, dtype);
  if (auto* node = record<CastNode>({.op = op, .where = where, .differentiable = is_floating_point(dtype)}, {x}, y)) {
    node->dtype = x.dtype();
  }
  return y;
}

Tensor Tensor::to(DType dtype, SourceLocation where) const { return autograd::detail::cast("to", *this, dtype, where); }

Tensor Tensor::to(Device device, SourceLocation where) const {
  if (device == this->device()) return *this;
  Tensor y = located(where, [&] {
    Tensor there = empty(sizes(), {dtype(), device});
    kernels::copy(there, *this);
    return there;
  });
  if (auto* node = record<ToDeviceNode>({.op = "to", .where = where}, {*this}, y)) node->device = this->device();
  return y;
}

Tensor Tensor::cpu(SourceLocation where) const { return to(Device(), where); }
Tensor Tensor::cuda(int index, SourceLocation where) const { return to(Device(kCUDA, index), where); }

Tensor reshape(const Tensor& x, const Shape& shape, SourceLocation where) { return x.reshape(shape, where); }
Tensor permute(const Tensor& x, const Shape& dims, SourceLocation where) { return x.permute(dims, where); }
Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1, SourceLocation where) {
  return x.transpose(dim0, dim1, where);
}
Tensor flatten(const Tensor& x, int64_t start_dim, int64_t end_dim, SourceLocation where) {
  return x.flatten(start_dim, end_dim, where);
}
Tensor expand(const Tensor& x, const Shape& shape, SourceLocation where) { return x.expand(shape, where); }

}  // namespace brigade
