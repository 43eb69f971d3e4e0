// The rank job of `brigade bench replay`.
#pragma once

namespace brigade::lab::bench {

// A rank job. Arguments: {"backends": [one], "link": "" or text for parse_link, "plans": [for each variant, for
// each rank its steps (plan.h)], "limits"}. Result: a row for each variant: {"rounds", "noise"}, and lists of
// milliseconds with an entry for each step of each round: "step_ms", "on_the_way_ms", "hidden_ms", "waiting_ms",
// "reducing_ms".
inline constexpr const char* kReplayJob = "bench-replay";

}  // namespace brigade::lab::bench
