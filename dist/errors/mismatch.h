// Why ranks met in different collectives: what each of them stands for, what all ranks did together
// before, and which explanations that leaves.
#pragma once

#include <brigade/dist/errors/collective.h>

#include <span>
#include <string>
#include <vector>

namespace brigade::dist {

// What a rank of a group that met in different collectives can know.
struct Mismatch {
  std::span<const CollectiveInfo> by_rank;  // what each rank is in
  // What each rank was doing then; empty where nobody could be asked.
  std::vector<RankActivity> activities = {};
  // What all ranks have done together before, oldest first: the latest of it, of this same group.
  std::vector<CollectiveInfo> before = {};
};

// The explanations that are left.
struct MismatchReason {
  std::string likely;      // the only one, with what speaks for it; "" where there are several
  std::string advice;      // right for all that are left
  std::vector<int> ranks;  // to which it points; empty: to no rank more than to another
};

// The ranks differ as `usual` and `odd`, positions in by_rank. `names`: of the ranks in texts.
MismatchReason reason_for(const Mismatch& mismatch, size_t usual, size_t odd, const RankNames& names);

}  // namespace brigade::dist
