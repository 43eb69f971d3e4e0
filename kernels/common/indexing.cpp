// Device-independent parts of the kernels by index: checks and allocation of results.
#include <brigade/kernels/indexing.h>

#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/common/indexing.h>
#include <brigade/kernels/elementwise.h>

#include <cstring>
#include <string>

namespace brigade::kernels {

// --- gather and scatter: checks of index and source; a large tensor is narrowed to the part that the index can reach.

namespace {

void check_index(const char* what, const Tensor& x, const Tensor& index) {
  if (index.dtype() != kInt64) {
    throw DTypeError("{}: expected int64 indices, got {}; convert with .to(kInt64)", what, describe(index));
  }
  if (index.device() == x.device()) return;
  throw DeviceError("{}: all tensors must be on one device, got {} and indices on {}", what, x.device(),
                    index.device());
}

// The leading part of x: narrowed to `sizes` in every dimension except `dim` (-1: in all dimensions).
Tensor beginning(const Tensor& x, const Shape& sizes, int dim) {
  Tensor part = x;
  for (int d = 0; d < x.dim(); ++d) {
    if (d != dim && x.sizes()[d] != sizes[d]) part = view::slice(part, d, 0, sizes[d]);
  }
  return part;
}

bool is_longer(const Shape& index, const Shape& x, int dim) {
  for (int d = 0; d < x.size(); ++d) {
    if (d != dim && index[d] > x[d]) return true;
  }
  return false;
}

IndexedShape indexed_shape(const Tensor& long_side, int dim, int64_t count) {
  IndexedShape shape;
  shape.count = count;
  for (int d = 0; d < long_side.dim(); ++d)
    (d < dim ? shape.outer : d == dim ? shape.length : shape.inner) *= long_side.sizes()[d];
  return shape;
}

const IndexRole& role_of(const Scatter& how) {
  if (how.slices) return how.add ? kIndexAddIndex : how.source.defined() ? kIndexCopyIndex : kIndexFillIndex;
  return how.add ? kScatterAddIndex : kScatterIndex;
}

// The sizes that the source must have at least.
Shape source_sizes(const Tensor& x, int dim, const Tensor& index, bool slices) {
  if (!slices) return index.sizes();
  Shape sizes = x.sizes();
  if (x.dim() > 0) sizes[dim] = index.numel();
  return sizes;
}

Tensor checked_source(const char* op, const Tensor& x, const Shape& expected, const Scatter& how) {
  const Tensor& source = how.source;
  if (source.dtype() != x.dtype()) {
    throw DTypeError("{}: expected a source of dtype {} like the tensor, got {}", op, name(x.dtype()),
                     describe(source));
  }
  if (source.device() != x.device()) {
    throw DeviceError("{}: all tensors must be on one device, got {} and a source on {}", op, x.device(),
                      source.device());
  }
  const bool fits = how.slices ? source.sizes() == expected
                               : source.dim() == expected.size() && !is_longer(expected, source.sizes(), -1);
  if (!fits) {
    throw ShapeError("{}: expected a source {}{}, got {}", op, how.slices ? "" : "of at least ", expected,
                     describe(source));
  }
  return contiguous(beginning(source, expected, -1));
}

}  // namespace

GatherPlan prepare_gather(const Tensor& x, int dim, const Tensor& index) {
  check_index("gather", x, index);
  if (index.dim() != x.dim() || is_longer(index.sizes(), x.sizes(), dim)) {
    throw ShapeError(
        "gather: expected an index of as many dimensions as {}, no longer than it but along dimension {}, got {}",
        x.sizes(), dim, index.sizes());
  }
  GatherPlan plan;
  const Tensor part = beginning(x, index.sizes(), dim);
  plan.shape = indexed_shape(part, dim, x.dim() > 0 ? index.sizes()[dim] : 1);
  plan.x = contiguous(part);
  plan.index = contiguous(index);
  plan.result = empty(index.sizes(), x.options());
  return plan;
}

ScatterPlan prepare_scatter(const Tensor& x, int dim, const Tensor& index, const Scatter& how) {
  const IndexRole& role = role_of(how);
  const std::string op = role.op;
  check_index(role.op, x, index);
  if (how.add && x.dtype() == kBool) throw DTypeError("{}: bool tensors cannot be added; convert with .to(kInt64)", op);
  if (how.slices && index.dim() > 1) throw ShapeError("{}: expected indices [n], got {}", op, index.sizes());
  if (how.slices && x.dim() == 0 && index.numel() != 1 && how.source.defined())
    throw ShapeError("{}: a tensor without dimensions is one slice, got indices {}", op, index.sizes());
  if (!how.slices && (index.dim() != x.dim() || is_longer(index.sizes(), x.sizes(), dim))) {
    throw ShapeError(
        "{}: expected an index of as many dimensions as {}, no longer than it but along dimension {}, got {}", op,
        x.sizes(), dim, index.sizes());
  }
  ScatterPlan plan;
  plan.role = &role;
  plan.slices = how.slices;
  const Shape sizes = source_sizes(x, dim, index, how.slices);
  if (how.source.defined()) plan.source = checked_source(role.op, x, sizes, how);
  plan.index = contiguous(index);
  plan.result = clone(x);
  plan.region = beginning(plan.result, sizes, dim);
  plan.part = plan.region.sizes() == x.sizes() ? plan.result : clone(plan.region);
  plan.shape = indexed_shape(plan.part, dim, how.slices ? index.numel() : x.dim() > 0 ? sizes[dim] : 1);
  return plan;
}

Tensor ScatterPlan::finished() const {
  if (!part.is_same(result)) copy(region, part);
  return result;
}

uint64_t bits_of(Scalar value, DType dtype) {
  uint64_t bits = 0;
  visit_dtype(dtype, [&]<class T>() {
    const T element = static_cast<T>(value.to<compute_type<T>>());
    std::memcpy(&bits, &element, sizeof(T));
  });
  return bits;
}

// --- cat, index_rows and one_hot.

bool adds_nothing(const Tensor& tensor) { return tensor.dim() == 1 && tensor.numel() == 0; }

const Tensor& leading_tensor(std::span<const Tensor> tensors) {
  for (const Tensor& tensor : tensors) {
    if (!adds_nothing(tensor)) return tensor;
  }
  return tensors.front();
}

Tensor prepare_cat(std::span<const Tensor> tensors, int dim) {
  if (tensors.empty()) throw ValueError("cat: expected a non-empty list of tensors");
  DType dtype = tensors[0].dtype();
  const Tensor& leading = leading_tensor(tensors);
  Shape sizes = leading.sizes();
  if (sizes.empty()) throw ShapeError("cat: tensors without dimensions cannot be concatenated; use stack");
  sizes[dim] = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    Shape expected = sizes;
    if (tensors[i].dim() == sizes.size()) expected[dim] = tensors[i].sizes()[dim];
    if (tensors[i].sizes() != expected && !adds_nothing(tensors[i])) {
      throw ShapeError("cat: tensor {} has shape {}, which differs from tensor {} {} in more than dimension {}", i,
                       tensors[i].sizes(), &leading - tensors.data(), leading.sizes(), dim);
    }
    if (tensors[i].device() != tensors[0].device()) {
      throw DeviceError("cat: all tensors must be on one device, got {} and tensor {} on {}", tensors[0].device(), i,
                        tensors[i].device());
    }
    if (!adds_nothing(tensors[i])) sizes[dim] = (Size(sizes[dim]) + tensors[i].sizes()[dim]).value();
    dtype = promote_types(dtype, tensors[i].dtype());
  }
  return empty(sizes, {dtype, tensors[0].device()});
}

Tensor prepare_one_hot(const Tensor& indices, int64_t classes) {
  if (indices.dtype() != kInt64)
    throw DTypeError("one_hot: expected int64 indices, got {}; convert with .to(kInt64)", describe(indices));
  if (classes < 1) throw ValueError("one_hot: classes must be at least 1, got {}", classes);
  Shape sizes = indices.sizes();
  sizes.push_back(classes);
  Tensor result = empty(sizes, indices.options());
  fill(result, 0.0);
  return result;
}

Tensor index_rows_backward(const Tensor& grad, const Tensor& indices, const Shape& x_sizes) {
  Shape expected = x_sizes;
  expected[0] = indices.numel();
  if (grad.sizes() != expected) {
    throw ShapeError("index_select backward: expected a gradient {}, got {}", expected, describe(grad));
  }
  int64_t width = 1;
  for (int d = 1; d < x_sizes.size(); ++d)
    width *= x_sizes[d];
  // Seen as an embedding table of x_sizes[0] rows.
  const Shape flat{indices.numel(), width};
  const Tensor source = contiguous(grad);
  const Tensor result = embedding_backward(
      view::as_strided(source, flat, contiguous_strides(flat), source.storage_offset()), indices, {.rows = x_sizes[0]});
  return view::as_strided(result, x_sizes, contiguous_strides(x_sizes), 0);
}

// --- Embedding: checks of tables, indices and gradients, and allocation of results that the caller did not provide.

namespace {

void check_index_tensor(const Tensor& table, const Tensor& indices, const char* what) {
  if (indices.dtype() != kInt64) throw DTypeError("{}: expected int64 indices, got {}", what, name(indices.dtype()));
  if (indices.device() == table.device()) return;
  throw DeviceError("{}: both tensors must be on one device, got {} and indices on {}", what, table.device(),
                    indices.device());
}

}  // namespace

Tensor prepare_embedding(const Tensor& weight, const Tensor& indices) {
  if (weight.dim() != 2) throw ShapeError("embedding: expected a weight [rows, width], got {}", weight.sizes());
  check_index_tensor(weight, indices, "embedding");
  Shape sizes = indices.sizes();
  sizes.push_back(weight.size(1));
  return empty(sizes, weight.options());
}

Tensor prepare_index_rows(const Tensor& x, const Tensor& indices) {
  if (x.dim() == 0) throw ShapeError("index_select: a tensor without dimensions has no rows");
  check_index_tensor(x, indices, "index_select");
  if (indices.dim() != 1) throw ShapeError("index_select: expected indices [n], got {}", indices.sizes());
  Shape sizes = x.sizes();
  sizes[0] = indices.numel();
  return empty(sizes, x.options());
}

Tensor prepare_embedding_backward(const Tensor& grad, const Tensor& indices, const EmbeddingGrad& options) {
  check_index_tensor(grad, indices, "embedding_backward");
  Shape expected = indices.sizes();
  const int64_t width = grad.dim() > 0 ? grad.sizes().back() : 0;
  expected.push_back(width);
  if (grad.sizes() != expected) {
    throw ShapeError("embedding_backward: expected a gradient {} x width, got {}", indices.sizes(), describe(grad));
  }
  const Shape sizes{options.rows, width};
  if (!options.out.defined()) return empty(sizes, grad.options());
  if (options.out.sizes() != sizes || options.out.dtype() != grad.dtype() || !options.out.is_contiguous()) {
    throw ShapeError("embedding_backward: out must be a contiguous {} {}, got {}", name(grad.dtype()), sizes,
                     describe(options.out));
  }
  return options.out;
}

// --- sort checks k and allocates values and indices; a sort is a topk of all elements.

SortPlan prepare_topk(const Tensor& x, int64_t k, int dim) {
  SortPlan plan;
  for (int d = 0; d < x.dim(); ++d)
    (d < dim ? plan.outer : d == dim ? plan.length : plan.inner) *= x.sizes()[d];
  if (k < 0 || k > plan.length) {
    throw ValueError("topk: expected a k of 0..{}, the size of dimension {} of {}, got {}", plan.length, dim, x.sizes(),
                     k);
  }
  plan.kept = k;
  plan.x = contiguous(x);
  Shape sizes = x.sizes();
  if (x.dim() > 0) sizes[dim] = k;
  if (x.dim() == 0 && k == 0) sizes = {0};
  plan.result = {empty(sizes, x.options()), empty(sizes, {kInt64, x.device()})};
  return plan;
}

SortPlan prepare_sort(const Tensor& x, int dim) { return prepare_topk(x, x.dim() > 0 ? x.sizes()[dim] : 1, dim); }

}  // namespace brigade::kernels
