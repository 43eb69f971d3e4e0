// Verdicts on failed collectives: the ranks met in different ones, some did not arrive, or some are gone.
#pragma once

#include <brigade/dist/errors/departure.h>
#include <brigade/dist/errors/flight_recorder.h>
#include <brigade/dist/errors/rank_activity.h>
#include <brigade/dist/errors/rank_names.h>
#include <brigade/dist/errors/verdict.h>

#include <span>
#include <string>
#include <vector>

namespace brigade::dist {

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

struct Mismatch;  // mismatch.h

// At least two of the ranks differ. The same on every rank. Names no rank unless a majority or the preceding
// collectives point to one.
Verdict collective_mismatch(const Mismatch& mismatch, const RankNames& names = {});
// The ranks `missing` did not join the collective `waiting` within the timeout.
Verdict collective_timeout(const CollectiveInfo& waiting, std::span<const RankStatus> missing);
// The rank `lost` will not join the collective `waiting`.
Verdict rank_lost(const CollectiveInfo& waiting, const RankStatus& lost, const Departure& end);

}  // namespace brigade::dist
