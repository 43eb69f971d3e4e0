// The collectives that the calling thread has posted, on any group: how many, and which tensors it has reduced by hand.
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/dist/errors/collective_info.h>

#include <cstdint>

namespace brigade::dist {

uint64_t collectives_of_this_thread() noexcept;
struct ReducedByHand {
  uint64_t id = 0;  // of the tensor
  ReduceOp op = ReduceOp::Sum;
  int ranks = 0;
  SourceLocation where;
  uint64_t writes = 0;  // autograd::writes_so_far() then
};
// The latest all_reduce to which the thread has recently passed this very tensor, a gradient that the user averages by
// hand; null if there was none. Valid until the next one.
const ReducedByHand* reduced_by_hand(const Tensor& tensor) noexcept;
inline bool was_reduced_by_hand(const Tensor& tensor) noexcept { return reduced_by_hand(tensor) != nullptr; }

// RAII: all_reduce calls of this thread come from a communication hook, and do not count as reduced by hand.
class ReducedByHook {
 public:
  explicit ReducedByHook(bool is_hook = true) noexcept;
  ~ReducedByHook();
  ReducedByHook(const ReducedByHook&) = delete;
  ReducedByHook& operator=(const ReducedByHook&) = delete;

 private:
  const bool before_;
};

// Called by the groups.
void note_posted() noexcept;
void note_all_reduce(const Tensor& tensor, ReduceOp op, int ranks, SourceLocation where) noexcept;

}  // namespace brigade::dist
