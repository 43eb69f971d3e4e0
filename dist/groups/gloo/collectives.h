// Collectives over Gloo's messages, with the arithmetic of all transports.
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/dist/groups/chain.h>
#include <brigade/dist/groups/gloo/messages.h>
#include <brigade/dist/groups/process_group.h>

namespace brigade::dist {

// --- Broadcast, all-gather and barrier over Gloo's messages. Gloo's own collectives do not expose which peer they wait
// for, so a peer that dies in the middle of a message would not end the wait (Waiting).

// Broadcasts from `root`, in place, along a binomial tree: about log2(ranks) hops. Long tensors are sent in pieces,
// which a rank forwards as they arrive.
void tree_broadcast(const Messages& messages, const Tensor& tensor, int root);

// `output` gets the `input` of every rank, in rank order: each rank sends its input to every other rank. `input` may be
// this rank's place in `output`.
void direct_all_gather(const Messages& messages, const Tensor& output, const Tensor& input);

// Returns when all ranks have arrived, after ceil(log2(ranks)) steps: each step doubles the number of ranks that a rank
// has heard from (Hensgen, Finkel, Manber, "Two algorithms for barrier synchronization", 1988).
void dissemination_barrier(const Messages& messages);

// --- Reductions over the ranks of a Gloo group, with the arithmetic of all transports: in rank order, half types in
// float.
//
// Gloo's own all-reduce sums along a ring or a tree: in the dtype of the messages, where half types overflow, and in an
// order that depends on an element's position in the tensor. Here every rank receives the elements of all ranks for the
// share that it reduces, and reduces them like a group in shared memory:
//
//   1. rank r sends part q of its tensor to rank q, for all q;
//   2. rank q reduces the parts q of all ranks, rounding once;
//   3. rank q sends the result to all others.
//
// A rank sends (p-1)/p of the tensor's bytes in step 1 and the same in step 3, as in a ring, which is the minimum. It
// takes 2 steps instead of the ring's 2(p-1). The cost: every rank communicates with every other rank (the mesh exists
// anyway), and needs a buffer of (p-1)/p of the tensor. Long parts are sent in pieces, so that summing and sending
// overlap. A small tensor is sent whole to all ranks, which all reduce it in one step. reduce_scatter is steps 1 and 2.

// All-reduce in place. Tensors of both functions must have at least one element.
void reduce_everywhere(const Messages& messages, const Tensor& tensor, ReduceOp op);

// Reduce-scatter: `output` gets this rank's part of `input`, and may alias it.
void reduce_own_part(const Messages& messages, const Tensor& output, const Tensor& input, ReduceOp op);

// --- Runs a Chain over Gloo.
//
// Partial sums travel from hop to hop in pieces, and results travel from the last hop back through all other ranks.
// When each rank has one hop, a rank receives and sends the tensor's bytes once in each direction: nearly as much as in
// a ring, in the order of the hops. All links are busy at the same time, since the pieces are pipelined.

// The tensor must have at least one element.
void run_chain(const Messages& messages, const Chain& chain, const Tensor& tensor);

}  // namespace brigade::dist
