// What the latest backward of this thread noticed: nodes whose backward returned nothing for an
// input that wants a gradient, so that gradients stopped although the graph goes on; and the first
// whose derivative was not finite; leaves of whose gradient a hook has left nothing.
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
  uint64_t leaf = 0;      // id of that input where it is a leaf,
  uint64_t producer = 0;  // or else the sequence of the node that made it
};
// Why a checkpoint returned nothing for an input: what became of it in the segment that ran again.
struct StoppedInSegment {
  uint64_t sequence;  // of the checkpoint's node
  uint32_t input;
  std::shared_ptr<const Tape> tape;  // of the segment
  uint64_t id;                       // of the input there
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
  // Of finite gradients, among the operations whose derivative has no bound, while a tape is kept.
  const char* non_finite_op = nullptr;
  SourceLocation non_finite_at;

  void note(const Node& node, uint32_t input);
};
// The first of its elements that is not zero; nothing where all are, and on a device, where to look would wait.
std::optional<double> first_number(const Tensor& gradient);
// Of the calling thread.
StoppedGradients& stopped_gradients() noexcept;

}  // namespace brigade::autograd::detail
