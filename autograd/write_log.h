// Who wrote last: in-place writes to memory that is watched (averaged gradients, what belongs to a
// process group), with their lines.
//
// A gradient that was changed by hand after it was reduced, on one rank only, makes the replicas
// drift apart. Each thread keeps its latest writes, so that the change can be named.
#pragma once

#include <brigade/core/tensor.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace brigade::autograd {

struct Write {
  const Storage* storage;
  int64_t begin;  // bytes [begin, end) of the storage that may have been written
  int64_t end;
  const char* op;  // "mul_", "clip_grad_norm_"
  SourceLocation where;
  uint64_t number;  // of this thread, from 1
};

// Notes a write, if the storage is watched.
void note_write(const Tensor& tensor, const char* op, SourceLocation where);
// Writes noted on this thread so far.
uint64_t writes_so_far() noexcept;
// Those after number `since` that may have touched `tensor`, oldest first. The log keeps the latest
// kWritesKept.
std::vector<Write> writes_to(const Tensor& tensor, uint64_t since);

// How many of them went to the memory that the tensor shares with its views: one that has a line bumps its version once.
uint64_t writes_to_memory_of(const Tensor& tensor, uint64_t since);

inline constexpr size_t kWritesKept = 16384;

// The latest write to each of some tensors, for this thread, while the object lives: however long
// ago it was. Where several follow one tensor, the latest to begin says what came before.
class FollowedWrites {
 public:
  // `what` and `where` stand for all that came before.
  FollowedWrites(std::span<const Tensor> tensors, const std::string& what, SourceLocation where);
  ~FollowedWrites();
  FollowedWrites(const FollowedWrites&) = delete;
  FollowedWrites& operator=(const FollowedWrites&) = delete;

 private:
  struct Key {
    const Storage* storage;  // may be gone
    int64_t begin, end;
  };
  std::vector<Key> keys_;
};

struct LastWrite {
  std::string what;  // "mul_", "step of SGD", or what it was followed with
  SourceLocation where;
  bool is_latest;  // false: the memory was written since, by something that left no line
  bool by_hand;    // by an operation in place, since it was followed and since the latest step of an optimizer
  // Nothing has written to it since it was followed but copy_() and load_state_dict(), outside every module's forward.
  bool only_replaced;
  uint64_t number;  // by hand: writes_by_hand() after it
};
// Whether any tensor is followed on this thread.
bool follows_writes() noexcept;
// How often followed tensors were written by hand on this thread.
uint64_t writes_by_hand() noexcept;
// That optimizer has moved it.
void note_update(const Tensor& tensor, const std::string& optimizer, SourceLocation where);
// Nothing for a tensor that this thread does not follow, or whose memory was replaced since.
std::optional<LastWrite> last_write(const Tensor& tensor);

}  // namespace brigade::autograd
