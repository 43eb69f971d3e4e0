// Finds buffers that one rank has replaced outside forward while each rank keeps its own buffers (broadcast_buffers
// is off), and distinguishes them from statistics and counters, which differ by design.
#pragma once

#include <brigade/dist/diagnosis/kinds.h>

#include <cstdint>
#include <span>
#include <vector>

namespace brigade::dist {

// The `buffers` that this thread has replaced by copy_() or load_state_dict() since its write number `since`
// (autograd::writes_by_hand), outside every module's forward, and that a forward reads. Excludes buffers that
// anything else has written since they were wrapped: those are the rank's own.
std::vector<StepOnRank::Edit> replaced_buffers(std::span<const NamedParameter> buffers, uint64_t since);

// The buffers that some but not all ranks have replaced; same names and order on every rank. The tensor is undefined
// if this rank's module does not have the buffer.
std::vector<NamedParameter> replaced_on_some_ranks(std::span<const NamedParameter> buffers,
                                                   std::span<const StepOnRank> steps);

}  // namespace brigade::dist
