// Choices between two operands, element by element. Every dtype; gradients go to the side that was
// chosen.
//
// They throw DTypeError unless the condition is bool, ShapeError when shapes do not broadcast.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade {

// a where `condition` holds, b elsewhere; all three broadcast. Two tensors give their common dtype; a tensor and a
// number give that of the tensor (float32 for an integer tensor and a floating number, int64 for a bool tensor and an
// integer).
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b,
             SourceLocation where = SourceLocation::current());
Tensor where(const Tensor& condition, const Tensor& a, Scalar b, SourceLocation where = SourceLocation::current());
Tensor where(const Tensor& condition, Scalar a, const Tensor& b, SourceLocation where = SourceLocation::current());
// float32, int64 or bool: the widest kind among the two numbers.
Tensor where(const Tensor& condition, Scalar a, Scalar b, SourceLocation where = SourceLocation::current());

// x with `value` where `mask` holds; both broadcast. Keeps the dtype of x. Throws ValueError for an
// integer x and a value that it cannot hold.
Tensor masked_fill(const Tensor& x, const Tensor& mask, Scalar value, SourceLocation where = SourceLocation::current());

}  // namespace brigade
