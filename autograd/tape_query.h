// Queries to the tape.
#pragma once

#include <brigade/autograd/tape.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace brigade::autograd {

// Why a tensor has no history, according to this thread's tape.
struct MissingHistory {
  // "cut by detach() at file:line", or the frozen leaves that it was computed from; "" if the tape does not know.
  std::string text;
  // Ids of the tensors that a gradient would have reached: the frozen leaves, or the tensors behind the cut.
  std::vector<uint64_t> leaves;
};
MissingHistory explain_missing_history(const Tensor& tensor);

// How a tensor was made, according to this thread's tape: "made in float16 by linear at file.cpp:12", for a cast of
// autocast's "made in float16 by autocast_to_float16 at file.cpp:12"; "" if the tape does not know.
std::string explain_making(const Tensor& tensor);

// The fate of one tensor (a parameter) between its use in forward and a root of backward.
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
  bool root_depends = false;  // for Cut: a root depends on the cut's result; otherwise only cuts used the tensor
  // Positions on the tape: from the end of the latest backward that went through a use of the tensor
  // to where the backward began.
  uint64_t begin = 0;
  uint64_t end = ~uint64_t{0};
};
// Follows everything that depends on `id` through the records, cuts included, to any of `roots`.
Fate trace(const Tape& tape, uint64_t id, std::span<const Tensor> roots);
// The same for a finished backward (Plan::number), as of its beginning; NotUsed if the tape no longer knows it.
Fate trace(const Tape& tape, uint64_t id, uint64_t backward);

// Sequences of the nodes whose results depend on `id` without a cut, ascending.
std::vector<uint64_t> live_nodes(const Tape& tape, uint64_t id);
// Whether another result of the same call carries gradients (such as the values of topk, next to its indices).
// `record` is one of the tape's, or a copy.
bool has_live_results(const Tape& tape, const Tape::Record& record);

// The innermost module call in `record`'s chain of calls, with the path of that module; nullptr
// when it ran outside any module.
const ModuleCall* module_of(const Tape& tape, const Tape::Record& record);
// The first such call between the two positions of `fate`; nullptr when there was none.
const ModuleCall* find_call(const Tape& tape, const Fate& fate, const std::function<bool(const ModuleCall&)>& is_meant);

}  // namespace brigade::autograd
