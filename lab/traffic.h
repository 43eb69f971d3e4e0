// The traffic of a rank in the collectives of its group, read from the group's flight recorder.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <cstdint>

namespace brigade::lab {

struct Traffic {
  uint64_t collectives = 0;
  double bytes = 0;  // NaN when the flight recorder has not kept all collectives
};

// The number of the latest collective; 0 before the first.
uint64_t latest_collective(const dist::ProcessGroup& group);
// The traffic of the collectives after number `before`.
Traffic traffic_since(const dist::ProcessGroup& group, uint64_t before);

}  // namespace brigade::lab
