// Logs in-place writes to watched memory (averaged gradients, tensors of a process group), with their lines.
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
// Notes that the program has made a copy of the tensor's values.
void note_copy(const Tensor& tensor);
// Writes noted on this thread so far.
uint64_t writes_so_far() noexcept;
// The writes after number `since` that may have touched `tensor`, oldest first. The log keeps the latest kWritesKept.
std::vector<Write> writes_to(const Tensor& tensor, uint64_t since);

// How many of these went to the memory that the tensor shares with its views: each logged write bumps its version once.
uint64_t writes_to_memory_of(const Tensor& tensor, uint64_t since);

inline constexpr size_t kWritesKept = 16384;

// RAII: follows some tensors and keeps the latest write to each on this thread, however old it is. If several objects
// follow one tensor, the latest object to begin sets the initial entry.
class FollowedWrites {
 public:
  // `what` and `where` describe all earlier writes.
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

struct WriteByHand {
  const char* op;  // "mul_"
  SourceLocation where;
};

struct LastWrite {
  std::string what;  // "mul_", "step of SGD", or `what` of FollowedWrites
  SourceLocation where;
  bool is_latest;  // false: a write that was not logged has changed the memory since
  bool by_hand;    // by an in-place operation, after it was followed and after the latest optimizer step
  std::vector<WriteByHand> all_by_hand;  // the latest eight of these, oldest first; one entry for a line in a row
  // Since it was followed, only copy_() and load_state_dict() have written to it, outside every module's forward.
  bool only_replaced;
  bool in_forward;  // the latest write by hand was made in a module's forward
  uint64_t number;  // by hand: writes_by_hand() after it
  bool is_copied;   // the program has made a copy of the values that it holds now
};
// Whether any tensor is followed on this thread.
bool follows_writes() noexcept;
// How often followed tensors were written by hand on this thread.
uint64_t writes_by_hand() noexcept;
// Notes that this optimizer has moved the tensor.
void note_update(const Tensor& tensor, const std::string& optimizer, SourceLocation where);
// The latest write; nothing for a tensor that this thread does not follow, or whose memory was replaced since.
std::optional<LastWrite> last_write(const Tensor& tensor);

}  // namespace brigade::autograd
