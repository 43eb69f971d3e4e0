// rank_lost: a rank died, left or failed.
//
// Severity: error
// When: in a collective
// Causes: `rank_gone`, `exception`
#include <brigade/dist/errors/collective.h>

#include <fmt/format.h>

namespace brigade::dist {
namespace {

std::string last_of(const CollectiveInfo& waiting, const RankStatus& lost) {
  // Once the others are past their first collective, so is this rank: an empty status then means that none arrived.
  const bool is_unheard = lost.last.sequence == 0 && lost.unasked.empty() && lost.activity.doing == Doing::Nothing;
  return is_unheard && waiting.sequence > 1 ? fmt::format("what rank {} did last is not known", lost.rank)
                                            : in_words(lost);
}

}  // namespace

Verdict rank_lost(const CollectiveInfo& waiting, const RankStatus& lost, const Departure& end) {
  Verdict verdict =
      new_verdict("rank_lost", Severity::Error, end.by_exception() ? CauseKind::Exception : CauseKind::RankGone);
  verdict.cause.op = name(waiting.kind);
  verdict.iteration = waiting.iteration;
  verdict.ranks = {lost.rank.number};
  verdict.cause.place = lost.last.where;
  verdict.cause.text = last_of(waiting, lost);
  if (!end.words.empty() && end.how != Departure::How::GaveUp && end.how != Departure::How::Unknown) {
    verdict.cause.note = verdict.cause.text;
    verdict.cause.text = end.words;
  }
  verdict.advice =
      end.by_exception() ? "repair that error; the other ranks only report it"
      : end.how == Departure::How::Left
          ? "give every rank the same number of batches and steps, or use Join: it left its loop before the others"
      : end.how == Departure::How::GaveUp ? "find what took this rank so long before it came"
                                          : "see its own output and exit status (brigade run prints them)";
  if (end.how == Departure::How::GaveUp)
    verdict.cause.text = fmt::format("this rank came after the time-out of rank {}", lost.rank);
  set_message(verdict, fmt::format("Rank {} {}; it was waited for in {}", lost.rank, way_of(end), in_words(waiting)));
  return verdict;
}

}  // namespace brigade::dist
