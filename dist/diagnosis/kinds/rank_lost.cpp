// rank_lost: a rank died, left or failed.
//
// Severity: error
// When: in a collective
// Causes: `rank_gone`, `exception`
#include <brigade/dist/diagnosis/collective.h>

#include <fmt/format.h>

namespace brigade::dist {

Verdict rank_lost(const CollectiveInfo& waiting, const Whereabouts& lost, const std::string& how, bool by_exception) {
  Verdict verdict;
  verdict.kind = "rank_lost";
  verdict.cause.kind = by_exception ? CauseKind::Exception : CauseKind::RankGone;
  verdict.cause.op = waiting.kind;
  verdict.iteration = waiting.iteration;
  verdict.ranks = {lost.rank};
  verdict.cause.place = lost.last.where;
  verdict.cause.text = fmt::format("rank {} {}; {}", lost.rank, how, in_words(lost));
  verdict.advice = by_exception ? "repair the error on the rank that is named; the other ranks only report it"
                   : how.starts_with("died")
                       ? "see its own output and exit status (brigade run prints them): a signal, a crash, no memory"
                       : "it left its loop before the others: give every rank the same number of batches, or use Join";
  verdict.message = fmt::format("{}; waited for in {}", verdict.cause.text, in_words(waiting));
  return verdict;
}

}  // namespace brigade::dist
