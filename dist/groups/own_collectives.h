// The collectives that the calling thread has posted, on any group: how many, and which tensors it has reduced by hand.
#pragma once

#include <brigade/core/tensor.h>

#include <cstdint>

namespace brigade::dist {

uint64_t collectives_of_this_thread() noexcept;
// Whether the thread has recently passed this very tensor to an all_reduce: a gradient that the user averages by hand.
bool was_reduced_by_hand(const Tensor& tensor) noexcept;

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
void note_all_reduce(const Tensor& tensor) noexcept;

}  // namespace brigade::dist
