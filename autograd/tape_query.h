// Queries to the tape.
#pragma once

#include <brigade/autograd/tape.h>

#include <functional>
#include <optional>
#include <string>
#include <unordered_set>
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
    NotUsed,  // no operation that belongs to this backward took it as an input
    Cut,      // a path to the root exists, and `record` cut it
    Dropped,  // used, but nothing that depends on it reached the root; `record` made the last tensor of a longest path
    Reached,  // a path to the root exists without a cut
  };
  Kind kind = Kind::NotUsed;
  std::optional<Tape::Record> record;  // the cut, or the last live operation
  // For NotUsed: the latest other use in a module that the tape still knows, else where it alone was read as a number.
  std::optional<Tape::Record> other_use;
  bool root_depends = false;  // for Cut: a root depends on the cut's result; otherwise only cuts used the tensor
  std::vector<Tape::Record> other_cuts;  // then, of other paths to the roots
  uint64_t begin = 0;  // position of the end of the latest backward that went through a use of the tensor
};

// What the tape knows of one backward: why a tensor has no gradient from it.
//
// A cause is a record that belongs to the backward: one that a root was computed from; one of a module call with such a
// record; or one that records gradients and takes a result of these, or a batch that they took. Everything else (a log
// of weights, an average of them, an evaluation) is no part of it. If no call of an own module belongs to it, all
// records do.
class BackwardOnTape {
 public:
  using IsMeant = std::function<bool(const ModuleCall&)>;
  // `is_own`: which calls are those of the modules that are asked about; all of them if it is empty.
  // `newest`: tensors with larger ids are neither parameters nor buffers. 0: not known.
  BackwardOnTape(const Tape& tape, std::span<const Tensor> roots, IsMeant is_own = {}, uint64_t newest = 0);
  // The same for a finished backward (Plan::number), as of its beginning. All is NotUsed if the tape has forgotten it.
  BackwardOnTape(const Tape& tape, uint64_t number, IsMeant is_own = {}, uint64_t newest = 0);

  // Follows everything that depends on `id` through the records, cuts included, to any of the roots.
  Fate trace(uint64_t id) const;
  // The first such call that belongs to this backward and began after `fate.begin`; nullptr when there is none.
  const ModuleCall* find_call(const Fate& fate, const IsMeant& is_meant) const;

 private:
  // Where a record was made.
  struct Scope {
    uint32_t call = 0;  // the outermost own call around it, else the outermost call; 0 outside all modules
    bool is_own = false;
  };
  Scope scope_of(uint32_t call) const;
  void find_records();
  void link_records(std::unordered_set<uint64_t> data);
  std::span<const Tape::Record> records() const { return tape_.records().first(end_ - tape_.first_position()); }
  bool belongs(uint32_t call, const Fate& fate) const;

  const Tape& tape_;
  const IsMeant is_own_;
  const uint64_t newest_;
  std::vector<uint64_t> roots_;
  uint64_t end_ = 0;  // position of the end of the records that were made before it began
  uint64_t number_ = 0;
  std::vector<Scope> scopes_;           // per record
  std::vector<uint8_t> belongs_;        // per record
  std::unordered_set<uint64_t> ids_;    // what the roots were computed from
  std::unordered_set<uint32_t> calls_;  // the calls of scopes that belong to it
  bool all_belong_ = false;
};

// Sequences of the nodes whose results depend on `id` without a cut, ascending.
std::vector<uint64_t> live_nodes(const Tape& tape, uint64_t id);
// Whether another result of the same call carries gradients (such as the values of topk, next to its indices).
// `record` is one of the tape's, or a copy.
bool has_live_results(const Tape& tape, const Tape::Record& record);

// The innermost module call in `record`'s chain of calls, with the path of that module; nullptr
// when it ran outside any module.
const ModuleCall* module_of(const Tape& tape, const Tape::Record& record);

}  // namespace brigade::autograd
