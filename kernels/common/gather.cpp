// Checks of index and source; a large tensor is narrowed to the part that the index can reach.
#include <brigade/kernels/gather.h>

#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/common/gather.h>
#include <brigade/kernels/elementwise.h>

#include <cstring>
#include <string>

namespace brigade::kernels {

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

}  // namespace brigade::kernels
