// When a collective's phases ended (dist::WorkTimes), as every backend has to tell it.
#pragma once

#include <string>

namespace brigade::test {

// Posts more collectives than fit into the ring at once. Ranks of one machine share a clock: no rank has all peers
// before the last one has posted. `knows_arrival`: whether this backend can tell when they had.
void check_work_times(const std::string& backend, int ranks, bool knows_arrival);

}  // namespace brigade::test
