// In-place operations in addition to the methods of Tensor. Each replaces x's value in the graph, as in PyTorch, bumps
// the version, and returns x. They throw what check_inplace() throws (autograd/views.h), and ShapeError "output with
// shape [2] doesn't match the broadcast shape [3, 2]".
#pragma once

#include <brigade/core/tensor.h>

namespace brigade {

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
