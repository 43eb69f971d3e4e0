// Puts what is known of a failed collective in words, with its verdict.
#include <brigade/dist/groups/collective_errors.h>

#include <fmt/format.h>

namespace brigade::dist {

CollectiveError mismatch_error(std::span<const CollectiveInfo> by_rank, const RankNames& names) {
  Verdict verdict = collective_mismatch(by_rank, names);
  const std::string message = verdict.message;
  return CollectiveError(message, {std::move(verdict)});
}

DiagnosedAs<PeerError> lost_rank_error(const WaitingRank& waiting, const Whereabouts& lost, const std::string& how,
                                       std::string_view remark) {
  const std::string message = fmt::format("rank {} {}; rank {} was waiting for it in {}; {}{}", lost.rank, how,
                                          waiting.rank, in_words(waiting.collective), in_words(lost), remark);
  return DiagnosedAs<PeerError>(message, {rank_lost(waiting.collective, lost, how, how.starts_with("failed: "))});
}

DiagnosedAs<TimeoutError> missing_ranks_error(const WaitingRank& waiting, std::span<const Whereabouts> missing,
                                              std::string_view time_out) {
  std::string ranks;
  std::string places;
  for (const Whereabouts& each : missing) {
    ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", each.rank);
    places += "; " + in_words(each);
  }
  const std::string message = fmt::format("{} in {} on rank {}: waiting for rank {}{}", time_out,
                                          in_words(waiting.collective), waiting.rank, ranks, places);
  return DiagnosedAs<TimeoutError>(message, {collective_timeout(waiting.collective, missing)});
}

std::exception_ptr group_gone_error() {
  return std::make_exception_ptr(
      DistError("the process group was destroyed before this collective was complete: keep the group until what was "
                "posted on it has been waited for"));
}

}  // namespace brigade::dist
