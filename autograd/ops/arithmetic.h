// Arithmetic and comparison, element by element, with broadcasting and promotion of dtypes
// (kernels/elementwise.h has the rules).
//
// Every function takes the caller's line, so that the tape and errors can name it. Throws
// ShapeError when shapes do not broadcast.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade {

Tensor add(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
Tensor sub(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
Tensor mul(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
Tensor div(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
// Where a and b are equal each gets half of the gradient, as in PyTorch.
Tensor maximum(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
Tensor minimum(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
Tensor add(const Tensor& a, Scalar b, SourceLocation where = SourceLocation::current());
Tensor sub(const Tensor& a, Scalar b, SourceLocation where = SourceLocation::current());
Tensor sub(Scalar a, const Tensor& b, SourceLocation where = SourceLocation::current());
Tensor mul(const Tensor& a, Scalar b, SourceLocation where = SourceLocation::current());
Tensor div(const Tensor& a, Scalar b, SourceLocation where = SourceLocation::current());
Tensor div(Scalar a, const Tensor& b, SourceLocation where = SourceLocation::current());

Tensor neg(const Tensor& x, SourceLocation where = SourceLocation::current());
// The gradient at 0 is 0.
Tensor abs(const Tensor& x, SourceLocation where = SourceLocation::current());
// Integers and bools give float32.
Tensor exp(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor log(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor sqrt(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor reciprocal(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor square(const Tensor& x, SourceLocation where = SourceLocation::current());

// Results without derivative.
Tensor sign(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor eq(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
Tensor ne(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
Tensor lt(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
Tensor le(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
Tensor gt(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
Tensor ge(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
Tensor eq(const Tensor& a, Scalar b, SourceLocation where = SourceLocation::current());
Tensor ne(const Tensor& a, Scalar b, SourceLocation where = SourceLocation::current());
Tensor lt(const Tensor& a, Scalar b, SourceLocation where = SourceLocation::current());
Tensor le(const Tensor& a, Scalar b, SourceLocation where = SourceLocation::current());
Tensor gt(const Tensor& a, Scalar b, SourceLocation where = SourceLocation::current());
Tensor ge(const Tensor& a, Scalar b, SourceLocation where = SourceLocation::current());

inline Tensor operator+(TensorArg a, const Tensor& b) { return add(a.tensor, b, a.where); }
inline Tensor operator-(TensorArg a, const Tensor& b) { return sub(a.tensor, b, a.where); }
inline Tensor operator*(TensorArg a, const Tensor& b) { return mul(a.tensor, b, a.where); }
inline Tensor operator/(TensorArg a, const Tensor& b) { return div(a.tensor, b, a.where); }
inline Tensor operator+(TensorArg a, Scalar b) { return add(a.tensor, b, a.where); }
inline Tensor operator-(TensorArg a, Scalar b) { return sub(a.tensor, b, a.where); }
inline Tensor operator*(TensorArg a, Scalar b) { return mul(a.tensor, b, a.where); }
inline Tensor operator/(TensorArg a, Scalar b) { return div(a.tensor, b, a.where); }
inline Tensor operator+(Scalar a, TensorArg b) { return add(b.tensor, a, b.where); }
inline Tensor operator-(Scalar a, TensorArg b) { return sub(a, b.tensor, b.where); }
inline Tensor operator*(Scalar a, TensorArg b) { return mul(b.tensor, a, b.where); }
inline Tensor operator/(Scalar a, TensorArg b) { return div(a, b.tensor, b.where); }
inline Tensor operator-(TensorArg x) { return neg(x.tensor, x.where); }
// In-place operators.
inline const Tensor& operator+=(TensorArg a, const Tensor& b) { return a.tensor.add_(b, 1, a.where); }
inline const Tensor& operator-=(TensorArg a, const Tensor& b) { return a.tensor.add_(b, -1, a.where); }
inline const Tensor& operator*=(TensorArg a, const Tensor& b) { return a.tensor.mul_(b, a.where); }
inline const Tensor& operator*=(TensorArg a, Scalar b) { return a.tensor.mul_(b, a.where); }
inline const Tensor& operator/=(TensorArg a, const Tensor& b) { return a.tensor.div_(b, a.where); }
inline const Tensor& operator/=(TensorArg a, Scalar b) { return a.tensor.div_(b, a.where); }
inline const Tensor& operator+=(TensorArg a, Scalar b) { return a.tensor.add_(b, a.where); }
inline const Tensor& operator-=(TensorArg a, Scalar b) { return a.tensor.sub_(b, a.where); }
// Elementwise comparison (Tensor::is_same checks whether two handles refer to one tensor).
inline Tensor operator==(TensorArg a, TensorArg b) { return eq(a.tensor, b.tensor, a.where); }
inline Tensor operator!=(TensorArg a, TensorArg b) { return ne(a.tensor, b.tensor, a.where); }
inline Tensor operator<(TensorArg a, TensorArg b) { return lt(a.tensor, b.tensor, a.where); }
inline Tensor operator<=(TensorArg a, TensorArg b) { return le(a.tensor, b.tensor, a.where); }
inline Tensor operator>(TensorArg a, TensorArg b) { return gt(a.tensor, b.tensor, a.where); }
inline Tensor operator>=(TensorArg a, TensorArg b) { return ge(a.tensor, b.tensor, a.where); }
inline Tensor operator==(TensorArg a, Scalar b) { return eq(a.tensor, b, a.where); }
inline Tensor operator!=(TensorArg a, Scalar b) { return ne(a.tensor, b, a.where); }
inline Tensor operator<(TensorArg a, Scalar b) { return lt(a.tensor, b, a.where); }
inline Tensor operator<=(TensorArg a, Scalar b) { return le(a.tensor, b, a.where); }
inline Tensor operator>(TensorArg a, Scalar b) { return gt(a.tensor, b, a.where); }
inline Tensor operator>=(TensorArg a, Scalar b) { return ge(a.tensor, b, a.where); }

// --- In-place operations in addition to the methods of Tensor. Each replaces x's value in the graph, as in PyTorch,
// bumps the version, and returns x. They throw what check_inplace() throws (autograd/views.h), and ShapeError "output
// with shape [2] doesn't match the broadcast shape [3, 2]".

// x -= alpha * other
const Tensor& sub_(const Tensor& x, const Tensor& other, Scalar alpha = 1,
                   SourceLocation where = SourceLocation::current());
const Tensor& div_(const Tensor& x, const Tensor& other, SourceLocation where = SourceLocation::current());
const Tensor& div_(const Tensor& x, Scalar number, SourceLocation where = SourceLocation::current());
const Tensor& neg_(const Tensor& x, SourceLocation where = SourceLocation::current());
const Tensor& exp_(const Tensor& x, SourceLocation where = SourceLocation::current());
const Tensor& sqrt_(const Tensor& x, SourceLocation where = SourceLocation::current());
const Tensor& relu_(const Tensor& x, SourceLocation where = SourceLocation::current());
const Tensor& leaky_relu_(const Tensor& x, double negative_slope = 0.01,
                          SourceLocation where = SourceLocation::current());
const Tensor& sigmoid_(const Tensor& x, SourceLocation where = SourceLocation::current());
const Tensor& tanh_(const Tensor& x, SourceLocation where = SourceLocation::current());

}  // namespace brigade
