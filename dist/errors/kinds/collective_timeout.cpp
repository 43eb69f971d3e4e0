// collective_timeout: some ranks did not join the collective within the timeout.
//
// Severity: error
// When: in a collective
// Causes: `rank_behind`
#include <brigade/dist/errors/collective.h>

#include <fmt/format.h>

namespace brigade::dist {

Verdict collective_timeout(const CollectiveInfo& waiting, std::span<const RankStatus> missing) {
  Verdict verdict;
  verdict.kind = "collective_timeout";
  verdict.cause.kind = CauseKind::RankBehind;
  verdict.cause.op = name(waiting.kind);
  verdict.iteration = waiting.iteration;
  std::vector<std::string> each;
  for (const RankStatus& place : missing) {
    verdict.ranks.push_back(place.rank.number);
    each.push_back(in_words(place));
  }
  const std::string places = first_of(each, kMostParagraphs, "; ");
  if (!missing.empty()) {
    const RankStatus& first = missing.front();
    verdict.cause.place = first.activity.doing == Doing::Nothing ? first.last.where : place_of(first.activity.where);
  }
  verdict.cause.text =
      fmt::format("{} did not come to {}{}{}", missing.empty() ? std::string("a rank") : ranks_in_words(verdict.ranks),
                  in_words(waiting), places.empty() ? "" : ": ", places);
  verdict.advice =
      "look at what the named rank does there: a loop that ended early, a branch, a slow batch. A longer time-out "
      "helps a rank that is only slow; Join serves ranks with fewer batches";
  verdict.message = verdict.cause.text;
  return verdict;
}

}  // namespace brigade::dist
