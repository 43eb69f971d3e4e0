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
#include <initializer_list>
#include <limits>
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
// an index out of range is found late (core/cuda/device_error.h).
Tensor index(const Tensor& x, std::span<const TensorIndex> indices, SourceLocation where = SourceLocation::current());
// Writes the value, broadcast, into the part of x that index() selects; differentiable in x and value. If index tensors
// select a position several times, the last value wins. Returns x. Throws like index(), and ShapeError for a value that
// does not broadcast.
const Tensor& index_put_(const Tensor& x, std::span<const TensorIndex> indices, const Tensor& value,
                         SourceLocation where = SourceLocation::current());
const Tensor& index_put_(const Tensor& x, std::span<const TensorIndex> indices, Scalar value,
                         SourceLocation where = SourceLocation::current());

}  // namespace brigade
