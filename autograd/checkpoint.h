// Activation checkpointing: forward keeps only the inputs of a segment; backward runs the segment
// again.
//
//   Tensor y = autograd::checkpoint([&](const Tensor& x) { return block(x); }, x);
//
// Source: Chen, Xu, Zhang, Guestrin: "Training deep nets with sublinear memory cost", 2016. The segment becomes one
// node. Its edges are the inputs and every other tensor that the segment used and that requires grad (parameters,
// captured results), so the plan of backward stays exact and each parameter becomes ready once, however often
// checkpoints nest or share a module. Both runs draw the same random numbers (dropout) and use the same autocast state
// (amp/autocast.h).
#pragma once

#include <brigade/core/tensor.h>

#include <functional>
#include <vector>

namespace brigade::autograd {

// `segment` must compute the same result both times and must not have side effects that are harmful when repeated
// (batch norm's running statistics move twice). It runs again in backward: anything it captures by reference must live
// until then. It returns one tensor. If nothing requires grad it just runs. Throws AutogradError in backward when the
// second run returns another shape or dtype, and at the end of backward (after a wrapper's own verdict on it) when the
// second run took another way: other operations, with another result or other parameters.
Tensor checkpoint(const std::function<Tensor(const std::vector<Tensor>&)>& segment, const std::vector<Tensor>& inputs,
                  SourceLocation where = SourceLocation::current());
Tensor checkpoint(const std::function<Tensor(const Tensor&)>& segment, const Tensor& input,
                  SourceLocation where = SourceLocation::current());

}  // namespace brigade::autograd
