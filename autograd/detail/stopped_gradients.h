// Findings of this thread's latest backward: nodes whose backward returned nothing for an input that needs a gradient,
// so that gradients stopped although the graph continues; the first node whose derivative was not finite; and leaves
// whose gradient a hook set to zero.
#pragma once

#include <brigade/autograd/node.h>
#include <brigade/autograd/tape_query.h>

#include <memory>
#include <optional>
#include <vector>

namespace brigade::autograd::detail {

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

  void note(const Node& node, uint32_t input);
};
// The first nonzero element; nothing if all are zero, or on a device, where reading would wait.
std::optional<double> first_number(const Tensor& gradient);
// The findings of the calling thread.
StoppedGradients& stopped_gradients() noexcept;

}  // namespace brigade::autograd::detail
