// Does again what a rank did in one step of a trace.
#pragma once

#include <brigade/dist/groups/process_group.h>
#include <brigade/lab/bench/replay/plan.h>

#include <map>
#include <vector>

namespace brigade::lab::bench {

class Player {
 public:
  // `steps`: of this rank; the peers play theirs.
  Player(std::vector<ReplayStep> steps, dist::ProcessGroupPtr group);

  struct Played {
    double step_ms = 0;
    RoundShares shares;  // with the forward in compute_ms
  };
  // Every step once, each after a barrier: what was computed is slept through, and the group is
  // looked at whenever a gradient was ready, as the reducer does. Collective.
  std::vector<Played> play();

 private:
  std::vector<ReplayStep> steps_;
  dist::ProcessGroupPtr group_;
  std::vector<std::vector<Tensor>> payloads_;  // of each step; shared by those of equal buckets
};

}  // namespace brigade::lab::bench
