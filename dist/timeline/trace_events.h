// The timelines of ranks as events of the Chrome trace format. A pure function: the timelines in,
// the text out.
//
// Viewers drop events that break the format's rules: slices of one lane must be nested or disjoint.
// The slices of a rank's computation are; its collectives overlap each other, so those of each
// bucket are asynchronous events with their own id. Begins and ends are separate events everywhere:
// an end that a viewer computes from a begin and a length may be rounded past the next begin.
#pragma once

#include <brigade/dist/timeline/timeline.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace brigade::dist {

struct RankTimeline {
  std::string clock;  // ranks whose clocks have the same name share one
  std::vector<RoundEvents> rounds;
};

// A JSON list. `parameters` are their names, `backend` that of the process group. Times are
// microseconds from the earliest event; ranks with another clock than rank 0's are shifted by the
// median difference of the times at which collectives ended. Format: docs/trace.md.
std::string trace_events(std::span<const RankTimeline> ranks, std::span<const std::string> parameters,
                         std::string_view backend);

}  // namespace brigade::dist
