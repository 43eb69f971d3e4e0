// Counts the entries of a flight recorder and the bytes of their tensors.
#include <brigade/lab/traffic.h>

#include <brigade/core/dtype.h>

#include <limits>

namespace brigade::lab {

uint64_t latest_collective(const dist::ProcessGroup& group) {
  const std::vector<dist::CollectiveInfo> entries = group.flight_recorder().entries();
  return entries.empty() ? 0 : entries.back().sequence;
}

Traffic traffic_since(const dist::ProcessGroup& group, uint64_t before) {
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
