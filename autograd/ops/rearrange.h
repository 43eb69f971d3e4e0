// The same elements in another order, repeated, or along a diagonal. Any dtype.
//
// Negative dimensions count from the end. A dimension out of range throws IndexError, one that is named twice
// ShapeError.
#pragma once

#include <brigade/core/tensor.h>

#include <optional>
#include <vector>

namespace brigade {

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

}  // namespace brigade
