// The nodes of flip, roll, unbind, diagonal and diag_embed; the others are made of views.
#include <brigade/autograd/ops/shape.h>

#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/record.h>
#include <brigade/core/factory.h>
#include <brigade/kernels/common/strides.h>
#include <brigade/kernels/elementwise.h>

namespace brigade {
namespace {

using namespace autograd;
using namespace autograd::detail;

// Converts negative dimensions; each may be named once.
Shape wrap_dims(const char* op, const Shape& dims, int count, SourceLocation where) {
  Shape result;
  DimSet seen;
  for (const int64_t dim : dims) {
    const int at = dimension_of(op, dim, count, where);
    if (!seen.add(at)) throw ShapeError(where, "{}: dimension {} appears twice in {}", op, dim, dims);
    result.push_back(at);
  }
  return result;
}

struct FlipNode final : Node {
  Shape dims;
  void backward(BackwardContext& context) override { context.set(0, flip(context.grad(), dims, {})); }
};

struct RollNode final : Node {
  Shape back, dims;
  void backward(BackwardContext& context) override { context.set(0, roll(context.grad(), back, dims, {})); }
};

// One node for all parts: their gradients are joined in one pass.
struct UnbindNode final : Node {
  int dim = 0;
  void backward(BackwardContext& context) override {
    std::vector<Tensor> grads;
    for (uint32_t i = 0; i < outputs.size(); ++i)
      grads.push_back(context.grad_or_zeros(i));
    context.set(0, stack(grads, dim, {}));
  }
};

// The position of a diagonal in a matrix: its first element and its length.
struct Diagonal {
  int64_t row, column, length;
};
Diagonal diagonal_of(int64_t rows, int64_t columns, int64_t offset) {
  offset = std::clamp(offset, -rows, columns);  // beyond the corners the diagonal is empty
  const int64_t row = std::max<int64_t>(-offset, 0);
  const int64_t column = std::max<int64_t>(offset, 0);
  return {row, column, std::max<int64_t>(std::min(rows - row, columns - column), 0)};
}

Tensor diagonal_view(const Tensor& x, int64_t offset, int dim1, int dim2) {
  const Diagonal where = diagonal_of(x.sizes()[dim1], x.sizes()[dim2], offset);
  Shape sizes = x.sizes();
  Shape strides = x.strides();
  const int64_t first =
      where.length == 0 ? 0 : where.row * strides[dim1] + where.column * strides[dim2];  // empty: stay inside
  const int64_t step = strides[dim1] + strides[dim2];
  for (const int dim : {std::max(dim1, dim2), std::min(dim1, dim2)}) {
    sizes.erase(dim);
    strides.erase(dim);
  }
  sizes.push_back(where.length);
  strides.push_back(step);
  return view::as_strided(x, sizes, strides, x.storage_offset() + first);
}

struct DiagonalNode final : Node {
  Shape sizes;
  int64_t offset = 0;
  int dim1 = 0, dim2 = 0;
  // Puts the gradient on the diagonal of a square, which is then padded to the shape of the matrices.
  void backward(BackwardContext& context) override {
    const Diagonal place = diagonal_of(sizes[dim1], sizes[dim2], offset);
    const Tensor square = diag_embed(context.grad(), 0, dim1, dim2, {});
    std::vector<int64_t> pads(static_cast<size_t>(2 * sizes.size()), 0);
    const auto around = [&](int dim, int64_t before) {
      const auto at = static_cast<size_t>(2 * (sizes.size() - 1 - dim));
      pads[at] = before;
      pads[at + 1] = sizes[dim] - before - place.length;
    };
    around(dim1, place.length == 0 ? 0 : place.row);
    around(dim2, place.length == 0 ? 0 : place.column);
    context.set(0, pad(square, pads, PadMode::Constant, 0, {}));
  }
};

struct DiagEmbedNode final : Node {
  int64_t offset = 0;
  int dim1 = 0, dim2 = 0;
  void backward(BackwardContext& context) override { context.set(0, diagonal(context.grad(), offset, dim1, dim2, {})); }
};

void check_two_dims(const char* op, int dim1, int dim2, SourceLocation where) {
  if (dim1 != dim2) return;
  throw ShapeError(where, "{}: expected two different dimensions, got {} twice", op, dim1);
}

// Copies x, rolled along dims[from..], to out; both are views of the whole tensors.
void copy_rolled(const Tensor& out, const Tensor& x, const Shape& shifts, const Shape& dims, int from) {
  if (from == dims.size()) return kernels::copy(out, x);
  const auto dim = static_cast<int>(dims[from]);
  const int64_t length = x.sizes()[dim];
  const int64_t shift = ((shifts[from] % length) + length) % length;
  const auto part = [&](const Tensor& t, int64_t start, int64_t end) { return view::slice(t, dim, start, end); };
  copy_rolled(part(out, shift, length), part(x, 0, length - shift), shifts, dims, from + 1);
  if (shift > 0) copy_rolled(part(out, 0, shift), part(x, length - shift, length), shifts, dims, from + 1);
}

}  // namespace

Tensor flip(const Tensor& x, const Shape& dims, SourceLocation where) {
  const Shape along = wrap_dims("flip", dims, x.dim(), where);
  Tensor turned = x;
  for (const int64_t dim : along) {
    if (x.dim() > 0) turned = kernels::reversed(turned, static_cast<int>(dim));
  }
  Tensor y = kernels::clone(turned);
  if (auto* node = record<FlipNode>({.op = "flip", .where = where}, {x}, y)) node->dims = along;
  return y;
}

Tensor roll(const Tensor& x, const Shape& shifts, const Shape& dims, SourceLocation where) {
  if (dims.empty() && shifts.size() == 1) {
    if (x.dim() == 1) return roll(x, shifts, {0}, where);
    return roll(x.flatten(0, -1, where), shifts, {0}, where).reshape(x.sizes(), where);
  }
  if (shifts.size() != dims.size()) {
    throw ValueError(where, "roll: expected a shift for each dimension, got shifts {} and dims {}", shifts, dims);
  }
  // A dimension may be named again: its shifts add up.
  Shape along;
  Shape by;
  for (int i = 0; i < dims.size(); ++i) {
    const int dim = dimension_of("roll", dims[i], x.dim(), where);
    const auto* const found = std::find(along.begin(), along.end(), dim);
    const int64_t shift = shifts[i] % std::max<int64_t>(x.dim() > 0 ? x.sizes()[dim] : 1, 1);
    if (found != along.end()) {
      by[static_cast<int>(found - along.begin())] += shift;
    } else {
      along.push_back(dim);
      by.push_back(shift);
    }
  }
  Tensor y = empty(x.sizes(), x.options());
  if (x.dim() == 0) {
    kernels::copy(y, x);
  } else if (x.numel() > 0) {
    copy_rolled(y, x, by, along, 0);
  }
  if (auto* node = record<RollNode>({.op = "roll", .where = where}, {x}, y)) {
    node->dims = along;
    node->back = by;
    for (int64_t& shift : node->back)
      shift = -shift;
  }
  return y;
}

Tensor repeat(const Tensor& x, const Shape& repeats, SourceLocation where) {
  const int added = repeats.size() - x.dim();
  if (added < 0) {
    throw ShapeError(where, "repeat: expected a count for each dimension of {}, got {}", x.sizes(), repeats);
  }
  for (const int64_t count : repeats) {
    if (count < 0) throw ValueError(where, "repeat: counts must not be negative, got {}", repeats);
  }
  Shape sizes = Shape::filled(added, 1);
  for (const int64_t size : x.sizes())
    sizes.push_back(size);
  Tensor y = added > 0 ? x.reshape(sizes, where) : x;
  // One dimension at a time, from the innermost: [.., size, ..] is viewed as [.., 1, size, ..], expanded, and merged.
  // Dimensions of size 1 are expanded directly, all at once and without a copy until the end.
  for (int d = repeats.size() - 1; d >= 0; --d) {
    if (repeats[d] == 1 || sizes[d] == 1) continue;
    const Shape before = y.sizes();
    Shape merged = before;
    merged[d] = located("repeat", where, [&] { return (Size(merged[d]) * repeats[d]).value(); });
    if (before.size() == kMaxDims) {
      y = cat(std::vector<Tensor>(static_cast<size_t>(std::max<int64_t>(repeats[d], 1)), y), d, where);
      if (repeats[d] == 0) y = y.slice(d, 0, 0, 1, where);
      continue;
    }
    Shape stretched = before;
    stretched.insert(d, repeats[d]);
    y = y.unsqueeze(d, where).expand(stretched, where).reshape(merged, where);
  }
  Shape target = y.sizes();
  for (int d = 0; d < repeats.size(); ++d) {
    if (sizes[d] == 1) target[d] = repeats[d];
  }
  if (target != y.sizes()) y = y.expand(target, where);
  return y.storage().get() == x.storage().get() || !y.is_contiguous() ? y.clone(where) : y;
}

Tensor tile(const Tensor& x, const Shape& repeats, SourceLocation where) {
  Shape counts = Shape::filled(std::max(x.dim() - repeats.size(), 0), 1);
  for (const int64_t count : repeats)
    counts.push_back(count);
  return repeat(x, counts, where);
}

Tensor repeat_interleave(const Tensor& x, int64_t repeats, std::optional<int64_t> dim, SourceLocation where) {
  if (repeats < 0) {
    throw ValueError(where, "repeat_interleave: the count must not be negative, got {}", repeats);
  }
  if (!dim) return repeat_interleave(x.flatten(0, -1, where), repeats, 0, where);
  if (x.dim() == 0) return repeat_interleave(x.reshape({1}, where), repeats, dim, where);
  const int at = dimension_of("repeat_interleave", *dim, x.dim(), where);
  Shape merged = x.sizes();
  merged[at] = located("repeat_interleave", where, [&] { return (Size(merged[at]) * repeats).value(); });
  if (x.dim() == kMaxDims) {
    // The maximum number of dimensions is reached: go through a matrix.
    int64_t outer = 1;
    for (int d = 0; d <= at; ++d)
      outer *= x.sizes()[d];
    const Tensor rows = x.reshape({outer, outer > 0 ? x.numel() / outer : 0}, where);
    return repeat_interleave(rows, repeats, 0, where).reshape(merged, where);
  }
  Shape stretched = x.sizes();
  stretched.insert(at + 1, repeats);
  return x.unsqueeze(at + 1, where).expand(stretched, where).clone(where).reshape(merged, where);
}

Tensor movedim(const Tensor& x, const Shape& source, const Shape& destination, SourceLocation where) {
  if (source.size() != destination.size()) {
    throw ShapeError(where, "movedim: expected as many destinations as sources, got {} and {}", source, destination);
  }
  const Shape from = wrap_dims("movedim", source, x.dim(), where);
  const Shape to = wrap_dims("movedim", destination, x.dim(), where);
  if (x.dim() == 0) return x.permute({}, where);
  Shape order = Shape::filled(x.dim(), -1);
  for (int i = 0; i < from.size(); ++i)
    order[static_cast<int>(to[i])] = from[i];
  int next = 0;
  for (int d = 0; d < x.dim(); ++d) {
    if (std::find(from.begin(), from.end(), d) != from.end()) continue;
    while (order[next] >= 0)
      ++next;
    order[next] = d;
  }
  return x.permute(order, where);
}

Tensor movedim(const Tensor& x, int64_t source, int64_t destination, SourceLocation where) {
  return movedim(x, Shape{source}, Shape{destination}, where);
}

Tensor swapaxes(const Tensor& x, int64_t axis0, int64_t axis1, SourceLocation where) {
  return located("swapaxes", where, [&] { return x.transpose(axis0, axis1, where); });
}
Tensor swapdims(const Tensor& x, int64_t dim0, int64_t dim1, SourceLocation where) {
  return located("swapdims", where, [&] { return x.transpose(dim0, dim1, where); });
}

std::vector<Tensor> unbind(const Tensor& x, int64_t dim, SourceLocation where) {
  if (x.dim() == 0) throw ShapeError("unbind: a tensor without dimensions has no parts", where);
  const int at = dimension_of("unbind", dim, x.dim(), where);
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < x.sizes()[at]; ++i)
    parts.push_back(view::select(x, at, i));
  if (parts.empty()) return parts;
  const Tensor* inputs[] = {&x};
  std::vector<const Tensor*> outputs;
  for (const Tensor& part : parts)
    outputs.push_back(&part);
  if (auto* node = record<UnbindNode>({.op = "unbind", .where = where}, inputs, outputs)) node->dim = at;
  for (const Tensor& part : parts)
    autograd::mark_view(part, x);
  return parts;
}

Tensor diagonal(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2, SourceLocation where) {
  const int first = dimension_of("diagonal", dim1, x.dim(), where);
  const int second = dimension_of("diagonal", dim2, x.dim(), where);
  check_two_dims("diagonal", first, second, where);
  Tensor y = diagonal_view(x, offset, first, second);
  if (auto* node = record<DiagonalNode>({.op = "diagonal", .where = where}, {x}, y)) {
    node->sizes = x.sizes();
    node->offset = offset;
    node->dim1 = first;
    node->dim2 = second;
  }
  autograd::mark_view(y, x);
  return y;
}

Tensor diag_embed(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2, SourceLocation where) {
  if (x.dim() == 0) throw ShapeError("diag_embed: expected at least 1 dimension, got []", where);
  const int first = dimension_of("diag_embed", dim1, x.dim() + 1, where);
  const int second = dimension_of("diag_embed", dim2, x.dim() + 1, where);
  check_two_dims("diag_embed", first, second, where);
  const int64_t side = located(
      where, [&] { return (offset < 0 ? Size(x.sizes().back()) - offset : Size(x.sizes().back()) + offset).value(); });
  Shape sizes = x.sizes();
  sizes.pop_back();
  sizes.insert(std::min(first, second), side);
  sizes.insert(std::max(first, second), side);
  Tensor y = located("diag_embed", where, [&] { return empty(sizes, x.options()); });
  kernels::fill(y, 0.0);
  if (x.numel() > 0) kernels::copy(diagonal_view(y, offset, first, second), x);
  if (auto* node = record<DiagEmbedNode>({.op = "diag_embed", .where = where}, {x}, y)) {
    node->offset = offset;
    node->dim1 = first;
    node->dim2 = second;
  }
  return y;
}

}  // namespace brigade
