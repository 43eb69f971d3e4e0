// Verdicts on collectives that went wrong: ranks that met in different ones, that did not come,
// that are gone.
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

// Where a rank is, as its peers know it.
struct Whereabouts {
  RankName rank;
  CollectiveInfo last;          // sequence 0: none yet
  bool finished = true;         // with `last`
  RankActivity activity;        // what it does outside of collectives
  double activity_seconds = 0;  // since when
  double silent_seconds = -1;   // since it was last heard of; -1: not known
  std::string unasked;          // why nobody could be asked for it: then nothing else is known
};
std::string in_words(const Whereabouts& place);

struct Mismatch;  // mismatch.h

// At least two of its ranks differ. The same on every rank. Names no rank where neither most of them
// nor what came before speaks against one.
Verdict collective_mismatch(const Mismatch& mismatch, const RankNames& names = {});
// `missing` did not come to `waiting` within the time-out.
Verdict collective_timeout(const CollectiveInfo& waiting, std::span<const Whereabouts> missing);
// `lost` is not coming.
Verdict rank_lost(const CollectiveInfo& waiting, const Whereabouts& lost, const Departure& end);

}  // namespace brigade::dist
