// Buffers that are not the ones that the wrapper holds: a member that was assigned again, so that forward reads another
// tensor than the one that is broadcast and saved; and, where each rank keeps its own buffers (broadcast_buffers is
// off), buffers that one rank has replaced outside forward, unlike statistics and counters, which differ by design.
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/dist/diagnosis/kinds.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace brigade::dist {

class StaleBuffers {
 public:
  // Called at the beginning of a recorded forward. `buffers`: those held by the wrapper, the same in every call.
  // Returns a buffer that had a further handle at the first call, that only the wrapper and the module tree hold now,
  // and that the latest forward has not read. Each buffer is returned once.
  std::optional<size_t> look_at(std::span<const Tensor> buffers);

 private:
  struct State {
    bool has_member = false;
    uint64_t alone_since = 0;  // tape position plus one; 0: another handle exists
  };
  std::vector<State> states_;  // by buffer
};

// The `buffers` that this thread has replaced by copy_() or load_state_dict() since its write number `since`
// (autograd::writes_by_hand), outside every module's forward, and that a forward reads. Excludes buffers that
// anything else has written since they were wrapped: those are the rank's own.
std::vector<StepOnRank::Edit> replaced_buffers(std::span<const NamedParameter> buffers, uint64_t since);

// The floating-point `buffers` that a module's forward has written by hand since then and from which a value in the
// graph was computed: a codebook, unlike statistics that training only records.
std::vector<StepOnRank::Edit> updated_buffers(std::span<const NamedParameter> buffers, uint64_t since);

// The buffers that some but not all ranks have replaced, or that all have updated; same names and order on every rank.
// The tensor is undefined if this rank's module does not have the buffer.
std::vector<NamedParameter> replaced_on_some_ranks(std::span<const NamedParameter> buffers,
                                                   std::span<const StepOnRank> steps);
std::vector<NamedParameter> updated_on_all_ranks(std::span<const NamedParameter> buffers,
                                                 std::span<const StepOnRank> steps);

}  // namespace brigade::dist
