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
  Verdict verdict;
  verdict.kind = "rank_lost";
  verdict.cause.kind = end.by_exception() ? CauseKind::Exception : CauseKind::RankGone;
  verdict.cause.op = name(waiting.kind);
  verdict.iteration = waiting.iteration;
  verdict.ranks = {lost.rank.number};
  verdict.cause.place = lost.last.where;
  verdict.cause.text = fmt::format("rank {} {}; {}", lost.rank, in_words(end), last_of(waiting, lost));
  verdict.advice =
      end.by_exception() ? "repair the error on the rank that is named; the other ranks only report it"
      : end.how == Departure::How::Left
          ? "it left its loop before the others: give every rank the same number of batches, or use Join, and run as many "
            "reduced backwards and steps of them (the last accumulation of an epoch too)"
          : "see its own output and exit status (brigade run prints them): a signal, a crash, no memory; or, with status "
            "0, an exit in the middle, while the others still needed it";
  verdict.message = fmt::format("{}; waited for in {}", verdict.cause.text, in_words(waiting));
  return verdict;
}

}  // namespace brigade::dist
