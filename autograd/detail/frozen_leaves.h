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
  // Plan::number of the thread's latest backward when `where` first froze the leaf; no other line has frozen it since.
  uint64_t backward;
};

// Called when requires_grad of a leaf is switched off, or on again.
void note_frozen(const Tensor& leaf, SourceLocation where);
void note_thawed(const Tensor& leaf) noexcept;
// How this thread froze the leaf; nothing if it did not, or if requires_grad was switched on again.
std::optional<FrozenLeaf> frozen_leaf(uint64_t leaf);

// For this thread's latest root without history: ids of the leaves that its gradient was meant for, as far as the tape
// knows.
std::vector<uint64_t>& leaves_of_refused_root() noexcept;

}  // namespace brigade::autograd::detail
