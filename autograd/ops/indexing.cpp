// Numbers and slices make views; index tensors select rows, after the indexed dimensions are merged into one.
#include <brigade/autograd/ops/indexing.h>

#include <brigade/autograd/ops/elementwise.h>
#include <brigade/autograd/ops/shape.h>
#include <brigade/core/error.h>
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/indexing.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace brigade {

using indexing::EllipsisType;
using indexing::NoneType;
using indexing::Slice;

TensorIndex::TensorIndex(const char* text) : index_(EllipsisType()) {
  if (std::strcmp(text, "...") != 0) throw ValueError("index: expected \"...\", got \"{}\"", text);
}

namespace {

const Tensor* tensor_of(const TensorIndex& index) { return std::get_if<Tensor>(&index.get()); }

bool is_mask_of(const Tensor& x, std::span<const TensorIndex> indices) {
  const Tensor* const mask = indices.size() == 1 ? tensor_of(indices.front()) : nullptr;
  return mask && mask->dtype() == kBool && mask->sizes() == x.sizes();
}

// The number of dimensions of x that an index consumes; a mask consumes all of its own.
int taken_by(const TensorIndex& index) {
  if (std::holds_alternative<NoneType>(index.get()) || std::holds_alternative<EllipsisType>(index.get())) return 0;
  const Tensor* const at = tensor_of(index);
  return at && at->dtype() == kBool ? at->dim() : 1;
}
int count_taken(std::span<const TensorIndex> indices) {
  int count = 0;
  for (const TensorIndex& each : indices)
    count += taken_by(each);
  return count;
}

void check(const Tensor& x, std::span<const TensorIndex> indices, SourceLocation where) {
  if (count_taken(indices) > x.dim())
    throw IndexError(where, "too many indices for tensor of dimension {}: got {}", x.dim(), count_taken(indices));
  const auto rests = std::ranges::count_if(
      indices, [](const TensorIndex& each) { return std::holds_alternative<EllipsisType>(each.get()); });
  if (rests > 1) throw IndexError(where, "index: expected at most one ellipsis, got {}", rests);
}

// Positions along one dimension.
struct Places {
  Tensor at;  // int64, on the device of x
  int dim;    // in the view that the other indices leave
  int of_x;   // the same dimension in the caller's x
};

// The view of x after the non-tensor indices, and the index tensors that remain.
struct Chosen {
  Tensor part;
  std::vector<Places> places;
};

[[noreturn]] void throw_out_of_range(int64_t index, int dim, int64_t size, SourceLocation where) {
  throw IndexError(where, "index {} is out of bounds for dimension {} with size {}", index, dim, size);
}

// Converts an integer tensor to non-negative int64 indices. On the CPU each is checked here; on a device the kernels do
// it.
Tensor from_start(const Tensor& given, const Tensor& x, int dim, SourceLocation where) {
  if (given.dtype() != kInt64 && given.dtype() != kInt32)
    throw ValueError(where, "index: expected a tensor of int64, int32 or bool, got {}", describe(given));
  const int64_t size = x.sizes()[dim];
  const Tensor at = kernels::cast(given.to(x.device(), where), kInt64);
  const auto number = [&](int64_t value) { return full({}, static_cast<double>(value), at.options()); };
  if (at.device().type == kCPU) {
    for (const int64_t index : at.to_vector<int64_t>()) {
      if (index < -size || index >= size) throw_out_of_range(index, dim, size, where);
    }
  }
  const Tensor is_negative = kernels::cast(kernels::compare(at, number(0), kernels::CompareOp::Less), kInt64);
  return kernels::binary(at, kernels::binary(is_negative, number(size), kernels::BinaryOp::Mul),
                         kernels::BinaryOp::Add);
}

void add_places(std::vector<Places>& places, const Tensor& at, const Tensor& x, int dim, int of_x,
                SourceLocation where) {
  if (at.dtype() != kBool) {
    places.push_back({from_start(at, x, of_x, where), dim, of_x});
    return;
  }
  bool fits = at.dim() >= 1;
  for (int d = 0; fits && d < at.dim(); ++d)
    fits = at.sizes()[d] == x.sizes()[of_x + d];
  if (!fits)
    throw ValueError(where, "index: expected a mask whose sizes are those of dimensions {} .. of {}, got {}", of_x,
                     x.sizes(), describe(at));
  const Tensor found = kernels::nonzero(at.to(x.device(), where));
  for (int d = 0; d < at.dim(); ++d)
    places.push_back({kernels::contiguous(view::select(found, 1, d)), dim + d, of_x + d});
}

// Applies the indices from left to right; each makes a view of the previous result.
Chosen choose(const Tensor& x, std::span<const TensorIndex> indices, SourceLocation where) {
  check(x, indices, where);
  Chosen chosen{x, {}};
  const int rest = x.dim() - count_taken(indices);
  int dim = 0;   // of the part
  int of_x = 0;  // of x
  for (const TensorIndex& each : indices) {
    if (const auto* number = std::get_if<int64_t>(&each.get())) {
      const int64_t size = x.sizes()[of_x];
      if (*number < -size || *number >= size) throw_out_of_range(*number, of_x, size, where);
      chosen.part = chosen.part.select(dim, *number, where);
    } else if (const auto* slice = std::get_if<Slice>(&each.get())) {
      chosen.part = chosen.part.slice(dim++, slice->start, slice->stop, slice->step, where);
    } else if (std::holds_alternative<NoneType>(each.get())) {
      chosen.part = chosen.part.unsqueeze(dim++, where);
    } else if (const Tensor* at = tensor_of(each)) {
      add_places(chosen.places, *at, x, dim, of_x, where);
      dim += taken_by(each);
    } else {
      dim += rest;
      of_x += rest;
    }
    of_x += taken_by(each);
  }
  return chosen;
}

// Several index tensors, broadcast against each other, as row numbers of the part, whose indexed dimensions are moved
// to the front and merged into one.
struct Rows {
  Tensor index;       // int64 [places]
  Shape places;       // the broadcast shape of the index tensors
  Shape order;        // of the part's dimensions
  Shape front;        // sizes of the part in this order
  int64_t count = 1;  // number of rows
  Shape beside;       // sizes of a row
  int at = 0;         // position of the index dimensions in the result
};

Rows rows_of(const Chosen& chosen, SourceLocation where) {
  Rows rows;
  for (const Places& each : chosen.places) {
    try {
      rows.places = broadcast_shapes(rows.places, each.at.sizes());
    } catch (const ShapeError&) {
      std::string shapes;
      for (const Places& other : chosen.places)
        shapes += (shapes.empty() ? "" : ", ") + to_string(other.at.sizes());
      throw IndexError(where, "shape mismatch: indexing tensors could not be broadcast together with shapes {}",
                       shapes);
    }
  }
  // Compute the row numbers. An index out of range, which only a device can have at this point, stays out of range.
  Tensor index, is_bad;
  for (const Places& each : chosen.places) {
    const int64_t size = chosen.part.sizes()[each.dim];
    const auto number = [&](int64_t value) { return full({}, static_cast<double>(value), each.at.options()); };
    const auto both = [](const Tensor& a, const Tensor& b, kernels::BinaryOp op) { return kernels::binary(a, b, op); };
    if (each.at.device().type != kCPU) {
      const Tensor bad =
          both(kernels::cast(kernels::compare(each.at, number(0), kernels::CompareOp::Less), kInt64),
               kernels::cast(kernels::compare(each.at, number(size), kernels::CompareOp::GreaterEqual), kInt64),
               kernels::BinaryOp::Add);
      is_bad = is_bad.defined() ? both(is_bad, bad, kernels::BinaryOp::Maximum) : bad;
    }
    index = index.defined() ? both(both(index, number(size), kernels::BinaryOp::Mul), each.at, kernels::BinaryOp::Add)
                            : each.at;
    rows.count = (Size(rows.count) * size).value();
    rows.order.push_back(each.dim);
  }
  if (is_bad.defined()) {
    const Tensor limit = full({}, static_cast<double>(rows.count), index.options());
    index = kernels::binary(kernels::binary(index, limit, kernels::BinaryOp::Minimum),
                            kernels::binary(is_bad, limit, kernels::BinaryOp::Mul), kernels::BinaryOp::Maximum);
  }
  rows.index = kernels::contiguous(view::expand(index, rows.places));
  rows.index = view::as_strided(rows.index, {rows.index.numel()}, {1}, rows.index.storage_offset());
  const auto is_indexed = [&](int d) {
    return std::ranges::any_of(chosen.places, [&](const Places& each) { return each.dim == d; });
  };
  for (int d = 0; d < chosen.part.dim(); ++d) {
    if (is_indexed(d)) continue;
    rows.order.push_back(d);
    rows.beside.push_back(chosen.part.sizes()[d]);
  }
  for (const int64_t d : rows.order)
    rows.front.push_back(chosen.part.sizes()[static_cast<int>(d)]);
  // Adjacent index dimensions stay in place; otherwise they go to the front.
  const int first = chosen.places.front().dim;
  bool neighbours = true;
  for (size_t i = 0; i < chosen.places.size(); ++i)
    neighbours = neighbours && chosen.places[i].dim == first + static_cast<int>(i);
  rows.at = neighbours ? first : 0;
  return rows;
}

Tensor as_rows(const Tensor& part, const Rows& rows, SourceLocation where) {
  Shape sizes{rows.count};
  for (const int64_t size : rows.beside)
    sizes.push_back(size);
  return part.permute(rows.order, where).reshape(sizes, where);
}

// The permutation from a tensor [places..., row...] to the result, as permute() takes it.
Shape order_of_result(const Rows& rows) {
  Shape order;
  for (int d = 0; d < rows.at; ++d)
    order.push_back(rows.places.size() + d);
  for (int d = 0; d < rows.places.size(); ++d)
    order.push_back(d);
  for (int d = rows.at; d < rows.beside.size(); ++d)
    order.push_back(rows.places.size() + d);
  return order;
}
Shape joined(const Shape& a, const Shape& b) {
  Shape sizes = a;
  for (const int64_t size : b)
    sizes.push_back(size);
  return sizes;
}
Shape inverse_of(const Shape& order) {
  Shape inverse = order;
  for (int d = 0; d < order.size(); ++d)
    inverse[static_cast<int>(order[d])] = d;
  return inverse;
}

}  // namespace

Tensor index(const Tensor& x, std::span<const TensorIndex> indices, SourceLocation where) {
  if (is_mask_of(x, indices) && x.dim() != 1) return masked_select(x, *tensor_of(indices.front()), where);
  const Chosen chosen = choose(x, indices, where);
  if (chosen.places.empty()) return chosen.part;
  const Rows rows = rows_of(chosen, where);
  const Tensor taken = index_select(as_rows(chosen.part, rows, where), 0, rows.index, where);
  return taken.reshape(joined(rows.places, rows.beside), where).permute(order_of_result(rows), where).contiguous(where);
}

Tensor Tensor::index(std::initializer_list<TensorIndex> indices, SourceLocation where) const {
  return brigade::index(*this, std::span(indices.begin(), indices.size()), where);
}

namespace {

// Writes the broadcast value into the rows of a copy of the part, then writes the copy into the part.
void write_rows(const Chosen& chosen, const Tensor& value, SourceLocation where) {
  const Rows rows = rows_of(chosen, where);
  const Shape order = order_of_result(rows);
  const Shape places_first = joined(rows.places, rows.beside);
  Shape target;
  for (const int64_t d : order)
    target.push_back(places_first[static_cast<int>(d)]);
  Tensor source = value.to(chosen.part.device(), where).to(chosen.part.dtype(), where);
  while (source.dim() > target.size() && source.sizes()[0] == 1)
    source = source.squeeze(0, where);
  Shape sizes{rows.index.numel()};
  for (const int64_t size : rows.beside)
    sizes.push_back(size);
  source = source.expand(target, where).permute(inverse_of(order), where).reshape(sizes, where);
  const Tensor written = index_copy(as_rows(chosen.part, rows, where), 0, rows.index, source, where);
  chosen.part.copy_(written.reshape(rows.front, where).permute(inverse_of(rows.order), where), where);
}

}  // namespace

const Tensor& index_put_(const Tensor& x, std::span<const TensorIndex> indices, const Tensor& value,
                         SourceLocation where) {
  const Chosen chosen = choose(x, indices, where);
  if (chosen.places.empty()) {
    chosen.part.copy_(value, where);
  } else {
    write_rows(chosen, value, where);
  }
  return x;
}
const Tensor& index_put_(const Tensor& x, std::span<const TensorIndex> indices, Scalar value, SourceLocation where) {
  if (is_mask_of(x, indices)) return x.copy_(masked_fill(x, *tensor_of(indices.front()), value, where), where);
  const Chosen chosen = choose(x, indices, where);
  if (chosen.places.empty()) {
    chosen.part.fill_(value, where);
  } else {
    write_rows(chosen, full({}, value, x.options()), where);
  }
  return x;
}

const Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices, const Tensor& value,
                                 SourceLocation where) const {
  return brigade::index_put_(*this, std::span(indices.begin(), indices.size()), value, where);
}
const Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices, Scalar value, SourceLocation where) const {
  return brigade::index_put_(*this, std::span(indices.begin(), indices.size()), value, where);
}

}  // namespace brigade
