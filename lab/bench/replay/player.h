// Replays what a rank did in the steps of a trace.
#pragma once

#include <brigade/dist/groups/process_group.h>
#include <brigade/lab/bench/replay/plan.h>

#include <vector>

namespace brigade::lab::bench {

class Player {
 public:
  // `steps` are those of this rank; the peers play their own.
  Player(std::vector<ReplayStep> steps, dist::ProcessGroupPtr group);

  struct Played {
    double step_ms = 0;
    RoundShares shares;  // compute_ms includes the forward
  };
  // Plays every step once, each after a barrier: sleeps where the trace computes, and calls progress() on the group
  // whenever a gradient was ready, as the reducer does. Collective.
  std::vector<Played> play();

 private:
  std::vector<ReplayStep> steps_;
  dist::ProcessGroupPtr group_;
  std::vector<std::vector<Tensor>> payloads_;  // for each step; steps with equal buckets share them
};

// --- The rank job of `brigade bench replay`.

// A rank job. Arguments: {"backends": [one], "link": "" or text for parse_link, "plans": [for each variant, for
// each rank its steps (plan.h)], "limits"}. Result: a row for each variant: {"rounds", "noise"}, and lists of
// milliseconds with an entry for each step of each round: "step_ms", "on_the_way_ms", "hidden_ms", "waiting_ms",
// "reducing_ms".
inline constexpr const char* kReplayJob = "bench-replay";

}  // namespace brigade::lab::bench
