// Activation checkpointing: forward keeps only the inputs of a segment; backward runs the segment
// again.
//
//   Tensor y = autograd::checkpoint([&](const Tensor& x) { return block(x); }, x);
//
// Source: Chen, Xu, Zhang, Guestrin: "Training deep nets with sublinear memory cost", 2016. The
// segment becomes one node whose edges are its inputs and whatever else it used that requires grad (parameters, results
// that it captured), so the plan of backward is as exact as without it, and each parameter becomes ready once, however often
// checkpoints nest or share a module. Random numbers (dropout) are drawn from the same place both
// times, and both run under the same autocast state (amp/autocast.h).
#pragma once

#include <brigade/core/tensor.h>

#include <functional>
#include <vector>

namespace brigade::autograd {

// `segment` must compute the same thing both times and must not have side effects that hurt when
// repeated (batch norm's running statistics move twice). It runs again in backward: what it captures
// by reference must live until then. Its result has one tensor. With nothing
// that requires grad it just runs. Throws AutogradError in backward when the second run gives
// another shape or dtype.
Tensor checkpoint(const std::function<Tensor(const std::vector<Tensor>&)>& segment, const std::vector<Tensor>& inputs,
                  SourceLocation where = SourceLocation::current());
Tensor checkpoint(const std::function<Tensor(const Tensor&)>& segment, const Tensor& input,
                  SourceLocation where = SourceLocation::current());

}  // namespace brigade::autograd
