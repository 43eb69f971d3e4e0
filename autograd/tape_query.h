// Questions to the tape.
#pragma once

#include <brigade/autograd/tape.h>

#include <optional>
#include <string>

namespace brigade::autograd {

// Why a tensor has no history, as the tape of this thread knows it: "the path from `relu` was cut
// by detach at file:line"; "" when it does not know.
std::string explain_missing_history(const Tensor& tensor);

// What became of one tensor (a parameter) between its use in forward and a root of backward.
struct Fate {
  enum class Kind {
    NotUsed,  // no operation since the last backward took it as an input
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
};
// Follows everything that depends on `id` through the records, cuts included, to any of `roots`.
Fate trace(const Tape& tape, uint64_t id, std::span<const Tensor> roots);

// The innermost module call in `record`'s chain of calls, with the path of that module; nullptr
// when it ran outside any module.
const ModuleCall* module_of(const Tape& tape, const Tape::Record& record);
// A call of the module with this path, or of one inside it, since the last finished backward;
// nullptr when there was none.
const ModuleCall* find_call(const Tape& tape, const std::string& path);

}  // namespace brigade::autograd
