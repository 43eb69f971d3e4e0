// Reading by index and adding by index are each other's derivative, so the backward of each consists of the other and
// is differentiable to any order.
#include <brigade/autograd/ops/indexing.h>

#include <brigade/autograd/autocast_mode.h>
#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/ops/arithmetic.h>
#include <brigade/autograd/ops/shape.h>
#include <brigade/autograd/record.h>
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/indexing.h>

namespace brigade {
namespace {

using namespace autograd;
using namespace autograd::detail;
using kernels::Scatter;

// Pads a gradient with the shape of the index to the shape of the source, which may be larger.
Tensor pad_to(const Tensor& grad, const Shape& sizes) {
  if (grad.sizes() == sizes) return grad;
  std::vector<int64_t> pads;
  for (int d = sizes.size() - 1; d >= 0; --d) {
    pads.push_back(0);
    pads.push_back(sizes[d] - grad.sizes()[d]);
  }
  return pad(grad, pads, PadMode::Constant, 0, {});
}

// The common state of the nodes here: where the index points.
struct IndexedNode : Node {
  SavedTensor index;
  int dim = 0;
  Shape sizes;  // gather: of x; the others: of the source
};

struct GatherNode final : IndexedNode {
  void backward(BackwardContext& context) override {
    const Tensor& grad = context.grad();
    context.set(0, scatter_add(zeros(sizes, grad.options()), dim, index.unpack(*this), grad, {}));
  }
};

struct ScatterNode final : IndexedNode {
  void backward(BackwardContext& context) override {
    const Tensor places = index.unpack(*this);
    if (context.needs_input_grad(0)) context.set(0, scatter(context.grad(), dim, places, 0.0, {}));
    if (context.needs_input_grad(2)) context.set(2, pad_to(gather(context.grad(), dim, places, {}), sizes));
  }
};

struct ScatterAddNode final : IndexedNode {
  void backward(BackwardContext& context) override {
    if (context.needs_input_grad(0)) context.set(0, context.grad());
    if (context.needs_input_grad(2))
      context.set(2, pad_to(gather(context.grad(), dim, index.unpack(*this), {}), sizes));
  }
};

struct IndexAddNode final : IndexedNode {
  void backward(BackwardContext& context) override {
    if (context.needs_input_grad(0)) context.set(0, context.grad());
    if (context.needs_input_grad(2))
      context.set(2, index_select(context.grad(), dim, index.unpack(*this).flatten(0, -1, {}), {}).reshape(sizes, {}));
  }
};

struct IndexCopyNode final : IndexedNode {
  void backward(BackwardContext& context) override {
    const Tensor places = index.unpack(*this);
    if (context.needs_input_grad(0)) context.set(0, index_fill(context.grad(), dim, places, 0, {}));
    if (context.needs_input_grad(2))
      context.set(2, index_select(context.grad(), dim, places.flatten(0, -1, {}), {}).reshape(sizes, {}));
  }
};

struct IndexFillNode final : IndexedNode {
  void backward(BackwardContext& context) override {
    context.set(0, index_fill(context.grad(), dim, index.unpack(*this), 0, {}));
  }
};

void keep(IndexedNode* node, int dim, const Tensor& index, const Shape& sizes) {
  if (!node) return;
  node->index.save_input(*node, index);
  node->dim = dim;
  node->sizes = sizes;
}

// Saves the index for nodes where only the gradient of the source needs it.
void keep_for_source(IndexedNode* node, int dim, const Tensor& index, const Tensor& source) {
  const Shape& sizes = source.sizes();  // first: throws for an undefined source
  if (source.requires_grad()) keep(node, dim, index, sizes);
}

// The selected positions are all different.
struct MaskedSelectNode final : Node {
  Tensor places;  // int64, not shared: no version to check
  Shape sizes;    // of x, broadcast
  void backward(BackwardContext& context) override {
    const Tensor& grad = context.grad();
    Tensor result = zeros({sizes.numel()}, grad.options());
    if (context.create_graph()) {
      result = scatter(result, 0, places, grad, {});
    } else {
      result = kernels::scatter(result, 0, places, {.source = grad, .distinct = true});
    }
    context.set(0, result.reshape(sizes, {}));
  }
};

}  // namespace

Tensor gather(const Tensor& x, int64_t dim, const Tensor& given, SourceLocation where) {
  const int at = dimension_of("gather", dim, x.dim(), where);
  const Tensor index = as_indices(given);
  Tensor y = located("gather", where, [&] { return kernels::gather(x, at, index); });
  keep(record<GatherNode>({.op = "gather", .where = where}, {x, index}, y), at, index, x.sizes());
  return y;
}

Tensor take_along_dim(const Tensor& x, const Tensor& indices, std::optional<int64_t> dim, SourceLocation where) {
  if (!dim) return gather(x.flatten(0, -1, where), 0, indices.flatten(0, -1, where), where);
  if (x.dim() != indices.dim()) {
    throw ShapeError(where, "take_along_dim: expected indices of as many dimensions as {}, got {}", x.sizes(),
                     indices.sizes());
  }
  const int at = dimension_of("take_along_dim", *dim, x.dim(), where);
  Shape beside = x.sizes();
  Shape of_indices = indices.sizes();
  if (x.dim() > 0) beside[at] = of_indices[at] = 1;
  Shape sizes = located("take_along_dim", where, [&] { return broadcast_shapes(beside, of_indices); });
  const auto stretched = [&](const Tensor& t) {
    if (x.dim() > 0) sizes[at] = t.sizes()[at];
    return t.sizes() == sizes ? t : t.expand(sizes, where);
  };
  return gather(stretched(x), at, stretched(indices), where);
}

Tensor scatter(const Tensor& x, int64_t dim, const Tensor& given, const Tensor& source, SourceLocation where) {
  const int at = dimension_of("scatter", dim, x.dim(), where);
  const Tensor index = as_indices(given);
  Tensor y = located("scatter", where, [&] { return kernels::scatter(x, at, index, {.source = source}); });
  keep(record<ScatterNode>({.op = "scatter", .where = where}, {x, index, source}, y), at, index, source.sizes());
  return y;
}

Tensor scatter(const Tensor& x, int64_t dim, const Tensor& given, Scalar value, SourceLocation where) {
  const int at = dimension_of("scatter", dim, x.dim(), where);
  const Tensor index = as_indices(given);
  Tensor y = located("scatter", where, [&] { return kernels::scatter(x, at, index, {.value = value}); });
  keep(record<ScatterNode>({.op = "scatter", .where = where}, {x, index}, y), at, index, {});
  return y;
}

Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& given, const Tensor& source, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"scatter_add">(where, x, source))
      return scatter_add(in[0], dim, given, in[1], where);
  }
  const int at = dimension_of("scatter_add", dim, x.dim(), where);
  const Tensor index = as_indices(given);
  Tensor y =
      located("scatter_add", where, [&] { return kernels::scatter(x, at, index, {.source = source, .add = true}); });
  keep_for_source(record<ScatterAddNode>({.op = "scatter_add", .where = where}, {x, index, source}, y), at, index,
                  source);
  return y;
}

Tensor index_add(const Tensor& x, int64_t dim, const Tensor& given, const Tensor& source, Scalar alpha,
                 SourceLocation where) {
  if (alpha.to<double>() != 1) return index_add(x, dim, given, mul(source, alpha, where), 1, where);
  const int at = dimension_of("index_add", dim, x.dim(), where);
  const Tensor index = as_indices(given);
  Tensor y = located("index_add", where,
                     [&] { return kernels::scatter(x, at, index, {.source = source, .add = true, .slices = true}); });
  keep_for_source(record<IndexAddNode>({.op = "index_add", .where = where}, {x, index, source}, y), at, index, source);
  return y;
}

Tensor index_copy(const Tensor& x, int64_t dim, const Tensor& given, const Tensor& from, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"index_copy">(where, x, from))
      return index_copy(in[0], dim, given, in[1], where);
  }
  const int at = dimension_of("index_copy", dim, x.dim(), where);
  const Tensor index = as_indices(given);
  // A number and a row of one number are interchangeable.
  const bool is_number = from.numel() == 1 && from.dim() + x.dim() == 1;
  const Tensor source = is_number ? from.reshape(Shape::filled(x.dim(), 1), where) : from;
  Tensor y =
      located("index_copy", where, [&] { return kernels::scatter(x, at, index, {.source = source, .slices = true}); });
  keep(record<IndexCopyNode>({.op = "index_copy", .where = where}, {x, index, source}, y), at, index, source.sizes());
  return y;
}

Tensor index_fill(const Tensor& x, int64_t dim, const Tensor& given, Scalar value, SourceLocation where) {
  const int at = dimension_of("index_fill", dim, x.dim(), where);
  const Tensor index = as_indices(given);
  Tensor y =
      located("index_fill", where, [&] { return kernels::scatter(x, at, index, {.value = value, .slices = true}); });
  keep(record<IndexFillNode>({.op = "index_fill", .where = where}, {x, index}, y), at, index, {});
  return y;
}

Tensor masked_select(const Tensor& x, const Tensor& mask, SourceLocation where) {
  if (mask.dtype() != kBool) {
    throw DTypeError(where, "masked_select: expected a bool mask, got {}; compare, or use .to(kBool)", describe(mask));
  }
  if (mask.device() != x.device()) {
    throw DeviceError(where, "masked_select: both tensors must be on one device, got {} and a mask {}", describe(x),
                      describe(mask));
  }
  const Shape sizes = located("masked_select", where, [&] { return broadcast_shapes(x.sizes(), mask.sizes()); });
  if (x.sizes() != sizes) return masked_select(x.expand(sizes, where), mask, where);
  const Tensor flat_mask = kernels::contiguous(view::expand(mask, sizes));
  const Shape row{sizes.numel()};
  const Tensor found =
      kernels::nonzero(view::as_strided(flat_mask, row, contiguous_strides(row), flat_mask.storage_offset()));
  const Tensor places = view::as_strided(found, {found.size(0)}, {1}, 0);
  const Tensor dense = kernels::contiguous(x);
  Tensor y = kernels::gather(view::as_strided(dense, row, contiguous_strides(row), dense.storage_offset()), 0, places);
  if (auto* node = record<MaskedSelectNode>({.op = "masked_select", .where = where}, {x, mask}, y)) {
    node->places = places;
    node->sizes = sizes;
  }
  return y;
}

Tensor nonzero(const Tensor& x, SourceLocation where) {
  Tensor y = kernels::nonzero(x);
  autograd::record_without_node({.op = "nonzero", .where = where, .differentiable = false}, {x}, y);
  return y;
}

}  // namespace brigade
