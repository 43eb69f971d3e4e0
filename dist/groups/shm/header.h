// Writes and reads the metadata of posted collectives in shared memory.
#pragma once

#include <brigade/dist/errors/flight_recorder.h>
#include <brigade/dist/groups/shm/control.h>

#include <span>
#include <string_view>

namespace brigade::dist::shm {

// Text that does not fit is truncated.
void copy_text(std::span<char> target, std::string_view text) noexcept;

// Fills in everything except the location of the data and the time of posting.
void tell(Header& header, HeaderTexts& texts, const CollectiveInfo& info) noexcept;
CollectiveInfo info_of(const Header& header, const HeaderTexts& texts);
// For the collective `sequence`, which the rank has posted and not yet overwritten.
CollectiveInfo info_of(const RankBlock& block, uint32_t sequence);

void tell(ActivityRecord& record, const RankActivity& activity) noexcept;
RankActivity activity_of(const ActivityRecord& record);

}  // namespace brigade::dist::shm
