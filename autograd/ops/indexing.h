// Indexing as in Python, with the names of torch::indexing:
//
//   using namespace brigade::indexing;
//   x.index({0, Slice(1, 5), None, "..."})             // x[0, 1:5, None, ...]
//   x.index({Slice(None, None, 2)})                    // x[::2]
//   x.index({mask}), x.index({Slice(), positions})     // x[mask], x[:, positions]
//   x.index({rows, columns})                           // x[rows, columns]: element by element
//   x.index_put_({Slice(0, 2)}, 3.0)                   // x[0:2] = 3
#pragma once

#include <brigade/core/tensor.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <variant>

namespace brigade {

namespace indexing {
// A new dimension of size 1; as a bound of a slice: the default (from the start, to the end, every element).
struct NoneType {};
inline constexpr NoneType None;
// All dimensions that the other indices do not consume.
struct EllipsisType {};
inline constexpr EllipsisType Ellipsis;

// Elements start, start + step, ... below stop; negative numbers count from the end, and both are
// clamped. step >= 1.
class Slice {
 public:
  struct Bound {
    int64_t value = 0;
    bool is_given = false;
    Bound(NoneType) noexcept {}                                        // NOLINT
    Bound(int64_t number) noexcept : value(number), is_given(true) {}  // NOLINT
  };
  explicit Slice(Bound start = None, Bound stop = None, Bound step = None) noexcept
      : start(start.is_given ? start.value : 0),
        stop(stop.is_given ? stop.value : std::numeric_limits<int64_t>::max()),
        step(step.is_given ? step.value : 1) {}

  int64_t start, stop, step;
};
}  // namespace indexing

// A number selects one element and removes the dimension; a slice, None and "..." as above; a tensor of int64 or int32
// selects the elements at its indices, a bool tensor those where it is true.
class TensorIndex {
 public:
  template <WholeNumber Number>
  TensorIndex(Number number) : index_(static_cast<int64_t>(number)) {}  // NOLINT
  TensorIndex(indexing::Slice slice) : index_(slice) {}                 // NOLINT
  TensorIndex(indexing::NoneType none) : index_(none) {}                // NOLINT
  TensorIndex(indexing::EllipsisType rest) : index_(rest) {}            // NOLINT
  // Accepts "..." only; throws ValueError for any other text.
  TensorIndex(const char* text);                             // NOLINT
  TensorIndex(Tensor tensor) : index_(std::move(tensor)) {}  // NOLINT

  using Index = std::variant<int64_t, indexing::Slice, indexing::NoneType, indexing::EllipsisType, Tensor>;
  const Index& get() const noexcept { return index_; }

 private:
  Index index_;
};

// A view if no index is a tensor, otherwise a copy; differentiable. Index tensors are integers of any shapes, broadcast
// against each other (and copied to the device of x), or bool with the sizes of the dimensions that they stand for,
// which select the positions where they are true. In the result, their dimensions take the place of the first index
// tensor, or go to the front if another index lies between the tensors (a number, which removes its dimension, does not
// count). Throws IndexError for an index out of range (with its value and the dimension of x), for more indices than
// dimensions, and for index tensors that do not broadcast; ValueError for a tensor of another dtype. On a CUDA device
// an index out of range is found late (core/cuda/error.h).
Tensor index(const Tensor& x, std::span<const TensorIndex> indices, SourceLocation where = SourceLocation::current());
// Writes the value, broadcast, into the part of x that index() selects; differentiable in x and value. If index tensors
// select a position several times, the last value wins. Returns x. Throws like index(), and ShapeError for a value that
// does not broadcast.
const Tensor& index_put_(const Tensor& x, std::span<const TensorIndex> indices, const Tensor& value,
                         SourceLocation where = SourceLocation::current());
const Tensor& index_put_(const Tensor& x, std::span<const TensorIndex> indices, Scalar value,
                         SourceLocation where = SourceLocation::current());

// --- Elements and slices by index: read, written, added to, and chosen by a mask.
//
// Any dtype. Indices are int64 or int32; one outside 0..size-1 is an IndexError with its position (in row-major order)
// and value, which on a CUDA device comes late (core/cuda/error.h). Nothing is written in place: the functions
// that write return a copy of x. A source has the dtype of x, and has to be on its device. They throw IndexError,
// ShapeError, DTypeError, DeviceError.

// result[.., i, ..] = x[.., index[.., i, ..], ..] along `dim`. The index has as many dimensions as x, and may be longer
// than x only along `dim`; the result has the shape of the index. The gradient is scatter_add.
Tensor gather(const Tensor& x, int64_t dim, const Tensor& index, SourceLocation where = SourceLocation::current());
// Like gather, with x and the index broadcast against each other except in `dim`. Without `dim`, x is flattened.
Tensor take_along_dim(const Tensor& x, const Tensor& indices, std::optional<int64_t> dim = std::nullopt,
                      SourceLocation where = SourceLocation::current());

// result[.., index[.., i, ..], ..] = source[.., i, ..]. The source is at least as long as the index along every
// dimension. If an index occurs several times, the last of its sources wins; as in PyTorch, the gradient assumes that
// each index occurs once.
Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
               SourceLocation where = SourceLocation::current());
Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, Scalar value,
               SourceLocation where = SourceLocation::current());
// The same with += in place of =: added in the order of the positions, with bitwise equal results each time.
Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                   SourceLocation where = SourceLocation::current());

// Whole slices of x along `dim`, selected by an index [n]; the source has the shape of x, with n along `dim`. The only
// slice of a tensor without dimensions is the tensor itself.
// x + alpha * source
Tensor index_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha = 1,
                 SourceLocation where = SourceLocation::current());
Tensor index_copy(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                  SourceLocation where = SourceLocation::current());
Tensor index_fill(const Tensor& x, int64_t dim, const Tensor& index, Scalar value,
                  SourceLocation where = SourceLocation::current());

// The elements of x where the bool mask holds, in row-major order: [count]. x and the mask are
// broadcast against each other. Waits for the device, since the count is not known before.
Tensor masked_select(const Tensor& x, const Tensor& mask, SourceLocation where = SourceLocation::current());
// The coordinates of the elements that are not zero: int64 [count, dimensions of x], in row-major order. No derivative;
// waits for the device.
Tensor nonzero(const Tensor& x, SourceLocation where = SourceLocation::current());

// --- Sorting along a dimension.
//
// Any dtype. A NaN counts as larger than any number. Sorting is always stable, whether requested or not: the result is
// the same each time, on every device. Gradients go to where the values came from.

// Values, and int64 indices of their original positions along the dimension.
struct SortResult {
  Tensor values;
  Tensor indices;
};
SortResult sort(const Tensor& x, int64_t dim = -1, bool descending = false, bool stable = false,
                SourceLocation where = SourceLocation::current());
// The indices alone; no derivative.
Tensor argsort(const Tensor& x, int64_t dim = -1, bool descending = false, bool stable = false,
               SourceLocation where = SourceLocation::current());
// The k largest (or smallest) along a dimension, always in order, even if not requested. Throws ValueError for a k
// outside of 0..size.
SortResult topk(const Tensor& x, int64_t k, int64_t dim = -1, bool largest = true, bool sorted = true,
                SourceLocation where = SourceLocation::current());

// --- Rows of a table, by index.

// Indices int64 [...] into a weight [rows, width] -> [..., width]. The gradient of the weight is dense; the row
// `padding_idx` (-1: none) gets none. With scale_grad_by_freq the gradient of a row is divided by the number of indices
// that select it. Throws ShapeError, DTypeError, ValueError, IndexError (for an index that is not a row, with its
// position).
Tensor embedding(const Tensor& indices, const Tensor& weight, int64_t padding_idx = -1,
                 SourceLocation where = SourceLocation::current());
Tensor embedding(const Tensor& indices, const Tensor& weight, int64_t padding_idx, bool scale_grad_by_freq,
                 SourceLocation where = SourceLocation::current());

}  // namespace brigade
