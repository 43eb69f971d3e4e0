// Shapes: views and copies in another shape or order, joining, splitting, borders.
#pragma once

#include <brigade/core/tensor.h>

#include <optional>
#include <vector>

namespace brigade {

// --- Views and copies in another shape, and casts. The corresponding methods of Tensor (reshape, permute, ...) are
// defined here as well.

// A view where the strides allow it, a copy otherwise; one entry may be -1.
Tensor reshape(const Tensor& x, const Shape& shape, SourceLocation where = SourceLocation::current());
Tensor permute(const Tensor& x, const Shape& dims, SourceLocation where = SourceLocation::current());
Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1, SourceLocation where = SourceLocation::current());
Tensor flatten(const Tensor& x, int64_t start_dim = 0, int64_t end_dim = -1,
               SourceLocation where = SourceLocation::current());
inline Tensor unsqueeze(const Tensor& x, int64_t dim, SourceLocation where = SourceLocation::current()) {
  return x.unsqueeze(dim, where);
}
inline Tensor squeeze(const Tensor& x, SourceLocation where = SourceLocation::current()) { return x.squeeze(where); }
inline Tensor squeeze(const Tensor& x, int64_t dim, SourceLocation where = SourceLocation::current()) {
  return x.squeeze(dim, where);
}
// Sizes of 1 are stretched without a copy; -1 keeps a size.
Tensor expand(const Tensor& x, const Shape& shape, SourceLocation where = SourceLocation::current());

// --- The same elements in another order, repeated, or along a diagonal. Any dtype.
//
// Negative dimensions count from the end. A dimension out of range throws IndexError, one that is named twice
// ShapeError.

// A copy with the order reversed along `dims`.
Tensor flip(const Tensor& x, const Shape& dims, SourceLocation where = SourceLocation::current());
// A copy rolled by shifts[i] along dims[i]; elements that leave at one end come in at the other. Without dims, x is
// rolled as if it were flattened, by one shift. Throws ValueError unless there is a shift per dimension.
Tensor roll(const Tensor& x, const Shape& shifts, const Shape& dims = {},
            SourceLocation where = SourceLocation::current());
// repeats[d] copies along each dimension; further entries in front make new dimensions. Throws
// ShapeError for fewer entries than dimensions, ValueError for a negative one.
Tensor repeat(const Tensor& x, const Shape& repeats, SourceLocation where = SourceLocation::current());
// Like repeat, where missing entries in front are 1.
Tensor tile(const Tensor& x, const Shape& repeats, SourceLocation where = SourceLocation::current());
// Each element `repeats` times in a row along `dim`; without `dim`, x is flattened. Throws ValueError for a negative
// count.
Tensor repeat_interleave(const Tensor& x, int64_t repeats, std::optional<int64_t> dim = std::nullopt,
                         SourceLocation where = SourceLocation::current());

// The following functions return views.
// Dimension source[i] becomes destination[i]; the others keep their order.
Tensor movedim(const Tensor& x, const Shape& source, const Shape& destination,
               SourceLocation where = SourceLocation::current());
Tensor movedim(const Tensor& x, int64_t source, int64_t destination, SourceLocation where = SourceLocation::current());
// transpose by other names
Tensor swapaxes(const Tensor& x, int64_t axis0, int64_t axis1, SourceLocation where = SourceLocation::current());
Tensor swapdims(const Tensor& x, int64_t dim0, int64_t dim1, SourceLocation where = SourceLocation::current());
// One view per index along `dim`, without that dimension.
std::vector<Tensor> unbind(const Tensor& x, int64_t dim = 0, SourceLocation where = SourceLocation::current());
// The elements (i, i + offset) of the matrices along dim1 and dim2, as a last dimension.
Tensor diagonal(const Tensor& x, int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1,
                SourceLocation where = SourceLocation::current());

// Puts the last dimension on the diagonal (i, i + offset) of square matrices along the result's dim1 and dim2, with
// zeros elsewhere.
Tensor diag_embed(const Tensor& x, int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1,
                  SourceLocation where = SourceLocation::current());

// --- Joining and splitting tensors.

// Shapes are equal except in `dim`; dtypes are promoted. Throws a ShapeError that names the first tensor that does not
// fit.
Tensor cat(const std::vector<Tensor>& tensors, int64_t dim = 0, SourceLocation where = SourceLocation::current());
// Equal shapes, joined along a new dimension.
Tensor stack(const std::vector<Tensor>& tensors, int64_t dim = 0, SourceLocation where = SourceLocation::current());
// Views of `size` along `dim` (the last may be shorter).
std::vector<Tensor> split(const Tensor& x, int64_t size, int64_t dim = 0,
                          SourceLocation where = SourceLocation::current());
// At most `count` views of equal size (the last may be shorter).
std::vector<Tensor> chunk(const Tensor& x, int64_t count, int64_t dim = 0,
                          SourceLocation where = SourceLocation::current());
// Slices of x along `dim` at int64 or int32 indices [n]. Throws IndexError with the position and
// value of a bad index.
Tensor index_select(const Tensor& x, int64_t dim, const Tensor& indices,
                    SourceLocation where = SourceLocation::current());
// int64 zeros and ones [..., classes] from class indices [...]. No derivative. Throws IndexError.
Tensor one_hot(const Tensor& indices, int64_t classes, SourceLocation where = SourceLocation::current());

// --- Borders around a tensor.

enum class PadMode : uint8_t {
  Constant,   // with a number
  Reflect,    // mirrored at the first and last element, which are not repeated: c b | a b c | b a
  Replicate,  // with the first and last element: a a | a b c | c c
  Circular,   // as if the tensor repeated: b c | a b c | a b
};

// `pads`: numbers of elements before and after, from the last dimension backwards, for as many dimensions as change. A
// negative number removes elements. Any dtype; `value` is used by Constant only. Throws ShapeError for more pads than
// dimensions, for removing more elements than there are, and for a border longer than its source (Reflect: the size
// minus 1; Circular: the size).
Tensor pad(const Tensor& x, const std::vector<int64_t>& pads, PadMode mode = PadMode::Constant, Scalar value = 0,
           SourceLocation where = SourceLocation::current());

}  // namespace brigade
