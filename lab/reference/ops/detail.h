// Helpers shared by several families: functions of one or two tensors, a row's dimensions to reduce, and the
// reduction of a loss.
#pragma once

#include <brigade/kernels/loss.h>
#include <brigade/lab/reference/operation.h>

namespace brigade::lab::reference {

using Unary = Tensor (*)(const Tensor&, SourceLocation);
using Binary = Tensor (*)(const Tensor&, const Tensor&, SourceLocation);

template <Unary function>
Outputs unary(const Inputs& in, const Arguments&) {
  return function(in[0], SourceLocation::current());
}
template <Binary function>
Outputs binary(const Inputs& in, const Arguments&) {
  return function(in[0], in[1], SourceLocation::current());
}

inline bool keepdim(const Arguments& args) { return args.flag("keepdim", false); }

// Calls `reduce` without further arguments, or with dimensions and keepdim.
template <class Reduce>
Outputs reduced(const Inputs& in, const Arguments& args, Reduce reduce) {
  return args.has("dim") ? reduce(in[0], args.shape("dim"), args.flag("keepdim", false)) : reduce(in[0]);
}

inline Reduction reduction(const Arguments& args) {
  if (!args.has("reduction")) return Reduction::Mean;
  const std::string name = args.text("reduction");
  if (name == "none") return Reduction::None;
  if (name == "sum") return Reduction::Sum;
  if (name == "mean") return Reduction::Mean;
  throw ValueError("argument 'reduction': expected none, mean or sum, got '{}'", name);
}

}  // namespace brigade::lab::reference
