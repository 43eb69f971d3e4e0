// Truth values, element by element: bool results, no derivative. Every dtype; a number is true when
// it is not 0, so a NaN is true. Tensors broadcast.
#pragma once

#include <brigade/core/tensor.h>

#include <type_traits>

namespace brigade {

Tensor logical_and(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
Tensor logical_or(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
Tensor logical_xor(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
Tensor logical_not(const Tensor& x, SourceLocation where = SourceLocation::current());

Tensor isnan(const Tensor& x, SourceLocation where = SourceLocation::current());
// Infinity of either sign.
Tensor isinf(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor isfinite(const Tensor& x, SourceLocation where = SourceLocation::current());

// Whether |a - b| <= atol + rtol * |b| for each pair of elements. An infinity is close only to itself. A NaN is close
// to another NaN with equal_nan, and otherwise to nothing.
struct CloseOptions {
  double rtol = 1e-5, atol = 1e-8;
  bool equal_nan = false;
};
Tensor isclose(const Tensor& a, const Tensor& b, const CloseOptions& options = {},
               SourceLocation where = SourceLocation::current());
// Whether isclose() holds for all elements. Throws ShapeError when the shapes do not broadcast.
bool allclose(const Tensor& a, const Tensor& b, const CloseOptions& options = {},
              SourceLocation where = SourceLocation::current());
template <class Number>  // so that {} stands for options
requires std::is_arithmetic_v<Number>
bool allclose(const Tensor& a, const Tensor& b, Number rtol, double atol = 1e-8,
              SourceLocation where = SourceLocation::current()) {
  return allclose(a, b, CloseOptions{.rtol = static_cast<double>(rtol), .atol = atol}, where);
}
// Whether shapes and elements are equal; a NaN is equal to nothing.
bool equal(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());

}  // namespace brigade
