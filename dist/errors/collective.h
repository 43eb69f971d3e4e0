// Verdicts on failed collectives, and why ranks met in different ones.
#pragma once

#include <brigade/dist/errors/flight_recorder.h>
#include <brigade/dist/errors/rank_activity.h>
#include <brigade/dist/errors/rank_names.h>
#include <brigade/dist/errors/verdict.h>

#include <span>
#include <string>
#include <vector>

namespace brigade::dist {

// --- Verdicts on failed collectives: the ranks met in different ones, some did not arrive, or some are gone.

// The status of a rank as its peers know it.
struct RankStatus {
  RankName rank;
  CollectiveInfo last;          // sequence 0: none yet
  bool finished = true;         // with `last`
  RankActivity activity;        // what it does outside of collectives
  double activity_seconds = 0;  // for how long
  double silent_seconds = -1;   // since the last sign of life; -1: unknown
  std::string unasked;          // why its status could not be queried; then nothing else is known
};
std::string in_words(const RankStatus& place);

struct Mismatch;

// At least two of the ranks differ. The same on every rank. Names no rank unless a majority or the preceding
// collectives point to one.
Verdict collective_mismatch(const Mismatch& mismatch, const RankNames& names = {});
// The ranks `missing` did not join the collective `waiting` within the timeout.
Verdict collective_timeout(const CollectiveInfo& waiting, std::span<const RankStatus> missing);
// The rank `lost` will not join the collective `waiting`.
Verdict rank_lost(const CollectiveInfo& waiting, const RankStatus& lost, const Departure& end);

// --- Explains why ranks met in different collectives, from the collective of each rank and from what all ranks did
// together before.

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
  std::string why;         // with its evidence
  std::string advice;      // valid for all that remain
  std::vector<int> ranks;  // that the evidence points to; empty: no rank in particular
};

// `usual` and `odd`: positions in by_rank of two ranks that differ. `names`: of the ranks in texts.
MismatchReason reason_for(const Mismatch& mismatch, size_t usual, size_t odd, const RankNames& names);

}  // namespace brigade::dist
