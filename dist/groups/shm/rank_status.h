// What the ranks of a host know of each other through shared memory: posted collectives, and their status.
#pragma once

#include <brigade/dist/errors/collective.h>
#include <brigade/dist/errors/flight_recorder.h>
#include <brigade/dist/groups/shm/control.h>

#include <span>
#include <string_view>

namespace brigade::dist::shm {

// --- Writes and reads the metadata of posted collectives in shared memory.

// Text that does not fit is truncated.
void copy_text(std::span<char> target, std::string_view text) noexcept;

// Fills in everything except the location of the data and the time of posting.
void tell(Header& header, HeaderTexts& texts, const CollectiveInfo& info) noexcept;
CollectiveInfo info_of(const Header& header, const HeaderTexts& texts);
// For the collective `sequence`, which the rank has posted and not yet overwritten.
CollectiveInfo info_of(const RankBlock& block, uint32_t sequence);

void tell(ActivityRecord& record, const RankActivity& activity) noexcept;
RankActivity activity_of(const ActivityRecord& record);

// --- The status of the ranks of a host, which they exchange through shared memory.

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
