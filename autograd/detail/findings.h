// What explains a missing or non-finite gradient afterwards: detaches, frozen leaves, stopped gradients, the operation
// of the first NaN, the factors of a loss.
#pragma once

#include <brigade/autograd/node.h>
#include <brigade/autograd/tape_query.h>
#include <brigade/core/tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace brigade::autograd::detail {

// --- Remembers detach() calls made while no tape was on, such as in a module's constructor before a wrapper takes the
// module. They explain why a forward that works with a detached copy does not use the parameter.

struct EarlyDetach {
  uint64_t leaf;    // id of a leaf that requires grad
  uint64_t result;  // id of the tensor detached from it or from a value computed from it
  SourceLocation where;
};

// Called while the thread keeps no tape. `source` requires grad; in a long history, some of its leaves are not found.
void note_early_detach(const Tensor& source, const Tensor& result, SourceLocation where);
// The latest detaches of this thread that start at this leaf, oldest first.
std::vector<EarlyDetach> early_detaches(uint64_t leaf);

// --- Parameters that were frozen after a listener began to observe them; used to explain a loss that has no grad_fn.

struct FrozenLeaf {
  uint64_t leaf;  // its id
  SourceLocation where;
  // Plan::number of the thread's latest backward when `where` first froze the leaf; no other line has frozen it since.
  uint64_t backward;
};

// Called when requires_grad of a leaf is switched off, or on again.
void note_frozen(const Tensor& leaf, SourceLocation where);
void note_thawed(const Tensor& leaf) noexcept;
// How this thread froze the leaf; nothing if it did not, or if requires_grad was switched on again.
std::optional<FrozenLeaf> frozen_leaf(uint64_t leaf);

// For this thread's latest root without history: ids of the leaves that its gradient was meant for, as far as the tape
// knows.
std::vector<uint64_t>& leaves_of_refused_root() noexcept;

// --- Findings of this thread's latest backward: nodes whose backward returned nothing for an input that needs a
// gradient, so that gradients stopped although the graph continues; the first node whose derivative was not finite; and
// leaves whose gradient a hook set to zero.

struct StoppedGradient {
  const char* op;
  SourceLocation where;
  uint64_t sequence;  // of the node
  uint32_t input;
  uint64_t leaf = 0;      // id of the input if it is a leaf,
  uint64_t producer = 0;  // otherwise the sequence of the node that made it
};
// Why a checkpoint returned nothing for an input: the fate of that input in the segment that ran again.
struct StoppedInSegment {
  uint64_t sequence;  // of the checkpoint's node
  uint32_t input;
  std::shared_ptr<const Tape> tape;  // of the segment
  uint64_t id;                       // of the input on that tape
  Fate fate;
};
struct EmptiedGradient {
  uint64_t leaf;        // its id
  SourceLocation hook;  // where it was registered
};
struct StoppedGradients {
  uint64_t backward = 0;  // Plan::number
  std::vector<StoppedGradient> all;
  std::vector<StoppedInSegment> in_segments;
  std::vector<EmptiedGradient> emptied;  // while a tape is kept, on the CPU
  // The first operation with an unbounded derivative that made finite gradients non-finite, while a tape is kept.
  const char* non_finite_op = nullptr;
  SourceLocation non_finite_at;
};
// The findings of the calling thread.
StoppedGradients& stopped_gradients() noexcept;

// --- Finds the operation that a non-finite number came from, once one has been seen.

// The gradient that a node's backward computed for an input, in `results` or directly in its destination.
Tensor result_of(const Node& node, std::span<const Tensor> results, uint32_t input);

struct FirstNonFinite {
  const char* op = nullptr;  // null: nothing was found
  SourceLocation where;
  bool is_result = false;  // its result is not finite; otherwise one of its inputs, or its result
  DType dtype = kFloat32;  // of the non-finite tensor: a half type may have overflowed
};
// The earliest operation behind the roots for which a NaN was saved, or else an infinity. Reads every tensor that the
// graph has saved.
FirstNonFinite first_non_finite(std::span<const Tensor> roots);

// --- The number by which an operation multiplies its input: the weight of a loss.

// Set for a sum, a difference, a product or a quotient of a tensor and a number (1 if the number is only added);
// nothing for any other operation.
std::optional<double> number_factor(const Node& node);

}  // namespace brigade::autograd::detail
