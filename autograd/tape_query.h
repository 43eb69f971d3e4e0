// Questions to the tape.
#pragma once

#include <brigade/autograd/tape.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace brigade::autograd {

// Why a tensor has no history, as the tape of this thread knows it.
struct MissingHistory {
  // "cut by detach() at file:line", or leaves that it was computed from were frozen; "" when it does not know.
  std::string text;
  // Ids of what a gradient would have reached, had it one: of those frozen leaves, or of what stands behind the cut.
  std::vector<uint64_t> leaves;
};
MissingHistory explain_missing_history(const Tensor& tensor);

// How a tensor was made, as the tape of this thread knows it: "made in float16 by linear at
// file.cpp:12", for a cast of autocast's "made in float16 by autocast_to_float16 at file.cpp:12"; ""
// when it does not know.
std::string explain_making(const Tensor& tensor);

// What became of one tensor (a parameter) between its use in forward and a root of backward.
struct Fate {
  enum class Kind {
    NotUsed,  // no operation took it as an input since the last backward that went through one
    Cut,      // a path to the root exists, and `record` cut it
    Dropped,  // used, but nothing that depends on it reached the root; `record` made the last tensor of a longest path
    Reached,  // a path to the root exists without a cut
  };
  Kind kind = Kind::NotUsed;
  std::optional<Tape::Record> record;  // the cut, or the last live operation
  std::optional<Tape::Record> use;     // the first operation that took the tensor
  // For NotUsed: an older use that the tape still knows, and the backward (number) that consumed
  // it.
  std::optional<Tape::Record> older_use;
  bool root_depends = false;  // for Cut: on the cut's result; otherwise the tensor went into cuts only
  // Positions on the tape: from the end of the latest backward that went through a use of the tensor
  // to where the backward began.
  uint64_t begin = 0;
  uint64_t end = ~uint64_t{0};
};
// Follows everything that depends on `id` through the records, cuts included, to any of `roots`.
Fate trace(const Tape& tape, uint64_t id, std::span<const Tensor> roots);
// The same for a backward that has ended (Plan::number), as it was when it began; NotUsed where the
// tape no longer knows it.
Fate trace(const Tape& tape, uint64_t id, uint64_t backward);

// Sequences of the nodes whose results depend on `id` without a cut, ascending.
std::vector<uint64_t> live_nodes(const Tape& tape, uint64_t id);
// Whether another result of the same call carries gradients (the values of topk, beside its
// indices). `record` is one of the tape's, or a copy.
bool has_live_results(const Tape& tape, const Tape::Record& record);

// The innermost module call in `record`'s chain of calls, with the path of that module; nullptr
// when it ran outside any module.
const ModuleCall* module_of(const Tape& tape, const Tape::Record& record);
// The first such call between the two positions of `fate`; nullptr when there was none.
const ModuleCall* find_call(const Tape& tape, const Fate& fate, const std::function<bool(const ModuleCall&)>& is_meant);

}  // namespace brigade::autograd
