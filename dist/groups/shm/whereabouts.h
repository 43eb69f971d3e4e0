// Where the ranks of a host are, as they tell each other through shared memory.
#pragma once

#include <brigade/dist/errors/collective.h>
#include <brigade/dist/groups/shm/control.h>

#include <string>
#include <string_view>

namespace brigade::dist::shm {

// What this rank does from now on.
void note_activity(RankBlock& own, const RankActivity& activity) noexcept;
// `name`: how errors call the rank. Any time, also of a rank that has died: what it
// did is left out then if it died while it said so.
Whereabouts whereabouts_of(RankBlock& block, const RankName& name);
// Where the rank was when it posted the collective `sequence`, which is not finished. All ranks read the same, whatever that
// rank has done since.
Whereabouts whereabouts_at(const RankBlock& block, const RankName& name, uint32_t sequence);

// This rank is not coming any more, and wakes who waits for it. `words`: of its exception, where it has one.
void leave(RankBlock& own, Departure::How how, std::string_view words = {}) noexcept;
// As that rank has said.
Departure end_of(const RankBlock& block);

}  // namespace brigade::dist::shm
