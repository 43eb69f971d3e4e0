// collective_mismatch: the ranks called collectives that do not match.
//
// Severity: error
// When: in a collective
// Causes: `collective_differs`
#include <brigade/dist/errors/collective.h>
#include <brigade/dist/errors/majority.h>

#include <fmt/format.h>

#include <algorithm>

namespace brigade::dist {
namespace {

bool same(const CollectiveInfo& a, const CollectiveInfo& b) { return a.matches(b); }

}  // namespace

Verdict collective_mismatch(const Mismatch& mismatch, const RankNames& names) {
  const auto& by_rank = mismatch.by_rank;
  Verdict verdict = new_verdict("collective_mismatch", Severity::Error, CauseKind::CollectiveDiffers);
  const size_t usual = usual_rank(by_rank, &same);
  const std::vector<int> odd_ones = odd_ranks(by_rank, &same);
  size_t odd = odd_ones.empty() ? usual : static_cast<size_t>(odd_ones.front());
  const MismatchReason reason = reason_for(mismatch, usual, odd, names);
  // Without a majority, no rank is more suspect than another, unless reason_for() has evidence.
  const bool most_agree = 2 * odd_ones.size() < by_rank.size();
  for (const int rank : most_agree ? odd_ones : reason.ranks)
    verdict.ranks.push_back(names(rank).number);
  const size_t first = std::min(usual, odd);
  const size_t second = std::max(usual, odd);
  if (!most_agree && !reason.ranks.empty()) odd = static_cast<size_t>(reason.ranks.front());
  verdict.cause.place = by_rank[odd].where;
  verdict.cause.op = name(by_rank[odd].kind);
  verdict.iteration = by_rank[odd].iteration;
  verdict.cause.text = reason.why;
  verdict.advice = reason.advice;
  set_message(verdict,
              fmt::format("The ranks met in different collectives: rank {} in {}, rank {} in {} (collective {})",
                          names(static_cast<int>(first)), call_in_words(by_rank[first]),
                          names(static_cast<int>(second)), call_in_words(by_rank[second]), by_rank[first].sequence));
  return verdict;
}

}  // namespace brigade::dist
