// Parameters that were frozen after a listener began to observe them; used to explain a loss that has no grad_fn.
#pragma once

#include <brigade/core/tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace brigade::autograd::detail {

struct FrozenLeaf {
  uint64_t leaf;  // its id
  SourceLocation where;
  // The latest backward of the thread (Plan::number) before that line has done so; no other line has since.
  uint64_t backward;
};

// requires_grad of a leaf was switched off, or on again.
void note_frozen(const Tensor& leaf, SourceLocation where);
void note_thawed(const Tensor& leaf) noexcept;
// By this thread; nothing where it was not, or was switched on since.
std::optional<FrozenLeaf> frozen_leaf(uint64_t leaf);

// Of the latest root on this thread that had no history: ids of the leaves that its gradient was meant for, as far as the
// tape knows.
std::vector<uint64_t>& leaves_of_refused_root() noexcept;

}  // namespace brigade::autograd::detail
