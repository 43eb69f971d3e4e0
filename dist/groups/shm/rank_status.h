// The status of the ranks of a host, which they exchange through shared memory.
#pragma once

#include <brigade/dist/errors/collective.h>
#include <brigade/dist/groups/shm/control.h>

#include <string>
#include <string_view>

namespace brigade::dist::shm {

// Publishes what this rank does from now on.
void note_activity(RankBlock& own, const RankActivity& activity) noexcept;
// `name`: the rank's name in errors. May be called at any time, even for a dead rank; its activity is omitted if it
// died while publishing it.
RankStatus rank_status_of(RankBlock& block, const RankName& name);
// The rank's status when it posted the collective `sequence`, which is not finished. All ranks read the same status,
// whatever the rank has done since.
RankStatus rank_status_at(const RankBlock& block, const RankName& name, uint32_t sequence);

// Publishes that this rank has left, and wakes the ranks that wait for it. `words`: the message of its exception, if
// any.
void leave(RankBlock& own, Departure::How how, std::string_view words = {}) noexcept;
// The departure that the rank has published.
Departure end_of(const RankBlock& block);

}  // namespace brigade::dist::shm
