// Buffers that one rank has replaced from outside forward, where each rank keeps its own
// (broadcast_buffers is off): what can be told from statistics and counters that differ by design.
#pragma once

#include <brigade/dist/diagnosis/kinds.h>

#include <cstdint>
#include <span>
#include <vector>

namespace brigade::dist {

// Of `buffers`, those that this thread has replaced by copy_() or load_state_dict() since its write number `since`
// (autograd::writes_by_hand), outside every module's forward, and that a forward reads. Not those that anything else has
// written since they were wrapped: they are this rank's own.
std::vector<StepOnRank::Edit> replaced_buffers(std::span<const NamedParameter> buffers, uint64_t since);

// Those that some ranks have replaced, and not all of them; the same names in the same order on every rank. Undefined
// where this rank's module has it no more.
std::vector<NamedParameter> replaced_on_some_ranks(std::span<const NamedParameter> buffers,
                                                   std::span<const StepOnRank> steps);

}  // namespace brigade::dist
