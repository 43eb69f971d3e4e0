// Raw views: another shape over the same storage. No history is recorded and the tape sees nothing;
// differentiable code uses the operations in autograd/ops/shape.h, which are built on these.
#pragma once

#include <brigade/core/tensor.h>

#include <optional>

namespace brigade::view {

// Offset and strides in elements. Throws IndexError when an element would lie outside the storage.
Tensor as_strided(const Tensor& tensor, const Shape& sizes, const Shape& strides, int64_t offset);
// A new TensorImpl over the same elements: same shape, no history.
Tensor alias(const Tensor& tensor);
// Strides that give `sizes` over the same elements without a copy, if there are any. `sizes` has
// the right element count.
std::optional<Shape> reshape_strides(const Tensor& tensor, const Shape& sizes);
// Replaces one -1 in `sizes`; throws ShapeError when the count does not fit.
Shape infer_sizes(const Shape& sizes, int64_t numel, SourceLocation where = {});
Tensor permute(const Tensor& tensor, const Shape& dims);
Tensor transpose(const Tensor& tensor, int64_t dim0, int64_t dim1);
Tensor expand(const Tensor& tensor, const Shape& sizes, SourceLocation where = {});
Tensor unsqueeze(const Tensor& tensor, int64_t dim);
Tensor squeeze(const Tensor& tensor, int64_t dim);
Tensor slice(const Tensor& tensor, int64_t dim, int64_t start, int64_t end, int64_t step = 1,
             SourceLocation where = {});
Tensor select(const Tensor& tensor, int64_t dim, int64_t index, SourceLocation where = {});
// 1-d over all elements of a contiguous tensor.
Tensor flat(const Tensor& tensor);

}  // namespace brigade::view
