// The traffic of a rank in the collectives of its group, read from the group's flight recorder.
#pragma once

#include <brigade/core/dtype.h>
#include <brigade/dist/groups/process_group.h>

#include <cstdint>
#include <limits>
#include <vector>

namespace brigade::lab {

struct Traffic {
  uint64_t collectives = 0;
  double bytes = 0;  // NaN when the flight recorder has not kept all collectives
};

// The number of the latest collective; 0 before the first.
inline uint64_t latest_collective(const dist::ProcessGroup& group) {
  const std::vector<dist::CollectiveInfo> entries = group.flight_recorder().entries();
  return entries.empty() ? 0 : entries.back().sequence;
}

// The traffic of the collectives after number `before`.
inline Traffic traffic_since(const dist::ProcessGroup& group, uint64_t before) {
  Traffic traffic;
  const std::vector<dist::CollectiveInfo> entries = group.flight_recorder().entries();
  if (entries.empty()) return traffic;
  traffic.collectives = entries.back().sequence - before;
  if (entries.front().sequence > before + 1) traffic.bytes = std::numeric_limits<double>::quiet_NaN();
  for (const dist::CollectiveInfo& info : entries) {
    if (info.sequence > before && info.dtype)
      traffic.bytes += static_cast<double>(info.count) * static_cast<double>(itemsize(*info.dtype));
  }
  return traffic;
}

}  // namespace brigade::lab
