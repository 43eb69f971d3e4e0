// Indexing as in Python, by torch::indexing's names:
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
// A new dimension of size 1; of a slice: from its end, up to its end, every element.
struct NoneType {};
inline constexpr NoneType None;
// All dimensions that the other indices leave.
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

// A number takes one element and its dimension away; a slice, None and "..." as above; a tensor of
// int64 or int32 takes the elements at its places, a bool tensor those where it is true.
class TensorIndex {
 public:
  template <WholeNumber Number>
  TensorIndex(Number number) : index_(static_cast<int64_t>(number)) {}  // NOLINT
  TensorIndex(indexing::Slice slice) : index_(slice) {}                 // NOLINT
  TensorIndex(indexing::NoneType none) : index_(none) {}                // NOLINT
  TensorIndex(indexing::EllipsisType rest) : index_(rest) {}            // NOLINT
  // "..." only; throws ValueError.
  TensorIndex(const char* text);                             // NOLINT
  TensorIndex(Tensor tensor) : index_(std::move(tensor)) {}  // NOLINT

  using Index = std::variant<int64_t, indexing::Slice, indexing::NoneType, indexing::EllipsisType, Tensor>;
  const Index& get() const noexcept { return index_; }

 private:
  Index index_;
};

// A view where no index is a tensor, else a copy; differentiable. Tensors: integers of any shapes, which
// are broadcast against each other (on a device other than x's they are copied there), or bool of the
// sizes of the dimensions that it stands for, which names the places where it is true. The places'
// dimensions stand where the first tensor stands, or in front where something lies between the tensors
// (a number that takes its dimension away does not). Throws IndexError for an index out of range, by
// value and dimension of x, for more indices than dimensions, and for places that do not broadcast;
// ValueError for another tensor. On a CUDA device a place out of range is found late
// (core/cuda/device_error.h).
Tensor index(const Tensor& x, std::span<const TensorIndex> indices, SourceLocation where = SourceLocation::current());
// Writes the value, broadcast, into the part of x that index() takes; differentiable in x and value.
// Where tensors name a place several times, it holds the last of its values. Returns x. Throws as index(),
// and ShapeError for a value that does not broadcast.
const Tensor& index_put_(const Tensor& x, std::span<const TensorIndex> indices, const Tensor& value,
                         SourceLocation where = SourceLocation::current());
const Tensor& index_put_(const Tensor& x, std::span<const TensorIndex> indices, Scalar value,
                         SourceLocation where = SourceLocation::current());

}  // namespace brigade
