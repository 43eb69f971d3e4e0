// collective_timeout: some ranks did not join the collective within the timeout.
//
// Severity: error
// When: in a collective
// Causes: `rank_behind`
#include <brigade/dist/errors/collective.h>

#include <fmt/format.h>

namespace brigade::dist {

Verdict collective_timeout(const CollectiveInfo& waiting, std::span<const RankStatus> missing) {
  Verdict verdict = new_verdict("collective_timeout", Severity::Error, CauseKind::RankBehind);
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
  verdict.cause.text = places;
  verdict.advice = "look at what it does there: a loop that ended early, a branch, a slow batch";
  const std::string who = missing.empty()       ? "A rank"
                          : missing.size() == 1 ? fmt::format("Rank {}", missing.front().rank)
                                                : "Ranks " + list_of(verdict.ranks);
  set_message(verdict, fmt::format("{} did not come to {}", who, in_words(waiting)));
  return verdict;
}

}  // namespace brigade::dist
