// Goes through the indices from the left, each of which makes a view of what the ones before have left.
#include <brigade/autograd/ops/indexing.h>

#include <brigade/autograd/ops/arithmetic.h>
#include <brigade/autograd/ops/concat.h>
#include <brigade/autograd/ops/gather.h>
#include <brigade/autograd/ops/where.h>
#include <brigade/core/error.h>

#include <algorithm>
#include <cstring>

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

// Dimensions of x that the indices speak of.
int count_taken(std::span<const TensorIndex> indices) {
  return static_cast<int>(std::ranges::count_if(indices, [](const TensorIndex& each) {
    return !std::holds_alternative<NoneType>(each.get()) && !std::holds_alternative<EllipsisType>(each.get());
  }));
}

void check(const Tensor& x, std::span<const TensorIndex> indices, SourceLocation where) {
  if (count_taken(indices) > x.dim())
    throw IndexError(where, "too many indices for tensor of dimension {}: got {}", x.dim(), count_taken(indices));
  const auto rests = std::ranges::count_if(
      indices, [](const TensorIndex& each) { return std::holds_alternative<EllipsisType>(each.get()); });
  if (rests > 1) throw IndexError(where, "index: expected at most one ellipsis, got {}", rests);
  const auto tensors = std::ranges::count_if(indices, [](const TensorIndex& each) { return tensor_of(each); });
  if (tensors > 1)
    throw ValueError(where, "index: expected at most one index that is a tensor, got {}; see gather()", tensors);
}

// The elements of one dimension at the places of `at`, or where it is true.
Tensor at_places(const Tensor& x, int dim, const Tensor& at, SourceLocation where) {
  if (at.dtype() == kBool) {
    if (at.dim() != 1 || at.size(0) != x.size(dim))
      throw ValueError(where,
                       "index: expected a mask of {} elements for dimension {}, or of the shape of the tensor as the "
                       "only index, got {}",
                       x.size(dim), dim, describe(at));
    return index_select(x, dim, nonzero(at, where).reshape({-1}, where), where);
  }
  if (at.dtype() != kInt64 && at.dtype() != kInt32)
    throw ValueError(where, "index: expected a tensor of int64, int32 or bool, got {}", describe(at));
  const int64_t size = x.size(dim);
  const Tensor from_start = brigade::where(lt(at, 0, where), add(at, size, where), at, where);
  const Tensor taken = index_select(x, dim, from_start.reshape({-1}, where), where);
  Shape shape;
  for (int d = 0; d < x.dim(); ++d) {
    if (d != dim) shape.push_back(x.size(d));
    for (int inner = 0; d == dim && inner < at.dim(); ++inner)
      shape.push_back(at.size(inner));
  }
  return taken.reshape(shape, where);
}

}  // namespace

Tensor index(const Tensor& x, std::span<const TensorIndex> indices, SourceLocation where) {
  check(x, indices, where);
  if (is_mask_of(x, indices) && x.dim() != 1) return masked_select(x, *tensor_of(indices.front()), where);
  const int rest = x.dim() - count_taken(indices);
  Tensor result = x;
  int dim = 0;
  for (const TensorIndex& each : indices) {
    if (const auto* number = std::get_if<int64_t>(&each.get())) {
      result = result.select(dim, *number, where);
    } else if (const auto* slice = std::get_if<Slice>(&each.get())) {
      result = result.slice(dim++, slice->start, slice->stop, slice->step, where);
    } else if (std::holds_alternative<NoneType>(each.get())) {
      result = result.unsqueeze(dim++, where);
    } else if (const Tensor* at = tensor_of(each)) {
      const int before = result.dim();
      result = at_places(result, dim, *at, where);
      dim += result.dim() - before + 1;
    } else {
      dim += rest;
    }
  }
  return result;
}

Tensor Tensor::index(std::initializer_list<TensorIndex> indices, SourceLocation where) const {
  return brigade::index(*this, std::span(indices.begin(), indices.size()), where);
}

namespace {

// What is written to.
Tensor part_of(const Tensor& x, std::span<const TensorIndex> indices, SourceLocation where) {
  if (std::ranges::any_of(indices, [](const TensorIndex& each) { return tensor_of(each); }))
    throw ValueError(where,
                     "index_put_: expected numbers and slices, or a bool tensor of the shape {} and a number; "
                     "index_copy(), scatter() and where() write at the places of a tensor",
                     x.sizes());
  return index(x, indices, where);
}

}  // namespace

const Tensor& index_put_(const Tensor& x, std::span<const TensorIndex> indices, const Tensor& value,
                         SourceLocation where) {
  part_of(x, indices, where).copy_(value, where);
  return x;
}
const Tensor& index_put_(const Tensor& x, std::span<const TensorIndex> indices, Scalar value, SourceLocation where) {
  if (is_mask_of(x, indices)) return x.copy_(masked_fill(x, *tensor_of(indices.front()), value, where), where);
  part_of(x, indices, where).fill_(value, where);
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
