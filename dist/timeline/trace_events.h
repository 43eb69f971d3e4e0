// The timelines of ranks as events of the Chrome trace format. A pure function: the timelines in,
// the text out.
//
// Viewers drop what breaks the format's rules: slices of one lane must lie inside of each other or
// apart. What a rank computes does; its collectives overlap each other, so each bucket's are
// asynchronous events with an id of their own. Begins and ends are separate events everywhere: from
// a begin and a length a viewer computes an end that may fall behind the next begin, by rounding.
#pragma once

#include <brigade/dist/timeline/timeline.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace brigade::dist {

struct RankTimeline {
  std::string clock;  // ranks with the same name of a clock share it
  std::vector<RoundEvents> rounds;
};

// A JSON list. `parameters` are their names, `backend` that of the process group. Times are
// microseconds from the earliest event, those of ranks with another clock than rank 0's moved by
// the median difference of the moments at which collectives ended. Format: docs/trace.md.
std::string trace_events(std::span<const RankTimeline> ranks, std::span<const std::string> parameters,
                         std::string_view backend);

}  // namespace brigade::dist
