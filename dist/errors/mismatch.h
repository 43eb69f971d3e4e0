// Explains why ranks met in different collectives, from the collective of each rank and from what
// all ranks did together before.
#pragma once

#include <brigade/dist/errors/collective.h>

#include <span>
#include <string>
#include <vector>

namespace brigade::dist {

// What a rank knows when its group met in different collectives.
struct Mismatch {
  std::span<const CollectiveInfo> by_rank;  // the collective that each rank is in
  // What each rank was doing then; empty if the ranks could not be asked.
  std::vector<RankActivity> activities = {};
  // The latest collectives that all ranks of this group ran together before, oldest first.
  std::vector<CollectiveInfo> before = {};
};

// The explanations that remain.
struct MismatchReason {
  std::string likely;      // the only one, with its evidence; "" if several remain
  std::string advice;      // valid for all that remain
  std::vector<int> ranks;  // that the evidence points to; empty: no rank in particular
};

// `usual` and `odd`: positions in by_rank of two ranks that differ. `names`: of the ranks in texts.
MismatchReason reason_for(const Mismatch& mismatch, size_t usual, size_t odd, const RankNames& names);

}  // namespace brigade::dist
