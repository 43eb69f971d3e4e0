// Reductions over the ranks of a Gloo group, by the arithmetic of all transports: in rank order,
// half types in float.
//
// Gloo's own all-reduce sums along a ring or a tree: in the dtype of what travels, where halves
// overflow, and in an order that depends on where in the tensor an element lies. Here every rank
// gets the elements of all ranks for the share that it reduces, and reduces them like a group in
// shared memory:
//
//   1. rank r sends part q of its tensor to rank q, for all q;
//   2. rank q reduces the parts q of all ranks, rounding once;
//   3. rank q sends the result to all others.
//
// A rank sends (p-1)/p of the tensor's bytes in step 1 and as much in step 3: what a ring sends,
// which is the least possible. It takes 2 steps where the ring takes 2(p-1). The price: every rank
// talks with every other (the mesh is there anyway), and needs room for (p-1)/p of the tensor. Long
// parts go in pieces, so that summing and sending overlap. A tensor of few bytes is sent whole to
// everybody, who all reduce all of it: one step. reduce_scatter is steps 1 and 2.
#pragma once

#include <brigade/dist/groups/gloo/messages.h>
#include <brigade/dist/groups/process_group.h>

namespace brigade::dist {

// In place. Of at least one element, as below.
void reduce_everywhere(const Messages& messages, const Tensor& tensor, ReduceOp op);

// `output` gets this rank's part of `input`, and may lie within it.
void reduce_own_part(const Messages& messages, const Tensor& output, const Tensor& input, ReduceOp op);

}  // namespace brigade::dist
