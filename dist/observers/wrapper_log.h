// What a wrapper keeps for its user: when things happened, and the warnings and notes.
#pragma once

#include <brigade/dist/diagnosis/advisories.h>
#include <brigade/dist/diagnosis/kinds.h>
#include <brigade/dist/timeline/timeline.h>

#include <vector>

namespace brigade::dist {

struct WrapperLog {
  explicit WrapperLog(int rank) noexcept : advisories(rank) {}

  Timeline timeline;
  Advisories advisories;
  // Per bucket of the latest reduced backward: kernels::probe() of the communication hook's result divided by the norm,
  // for the ranks to compare. Empty if they may differ.
  std::vector<double> hook_probes;
  StepOnRank::Forwards forwards;
};

}  // namespace brigade::dist
