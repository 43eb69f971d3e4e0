// What a rank says in shared memory of the collective that it has posted.
#pragma once

#include <brigade/dist/diagnosis/flight_recorder.h>
#include <brigade/dist/groups/shm/control.h>

#include <span>
#include <string_view>

namespace brigade::dist::shm {

// Text that does not fit is cut off.
void copy_text(std::span<char> target, std::string_view text) noexcept;

void tell(SourceLine& line, const Place& place) noexcept;
Place place_of(const SourceLine& line);

// Not where its data is, nor when it was posted.
void tell(Header& header, const CollectiveInfo& info) noexcept;
CollectiveInfo info_of(const Header& header);

// Whether two ranks have met in the same collective (CollectiveInfo::matches, without its strings).
bool same_collective(const Header& a, const Header& b) noexcept;

}  // namespace brigade::dist::shm
