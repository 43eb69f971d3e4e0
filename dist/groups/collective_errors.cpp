// Formats the errors of failed collectives, and adds their verdicts.
#include <brigade/dist/groups/collective_errors.h>

#include <brigade/dist/errors/collective.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace brigade::dist {

CollectiveError mismatch_error(std::span<const RankStatus> by_rank, const FlightRecorder& recorder,
                               const RankNames& names) {
  std::vector<CollectiveInfo> infos;
  Mismatch mismatch;
  for (const RankStatus& each : by_rank) {
    infos.push_back(each.last);
    mismatch.activities.push_back(each.activity);
  }
  mismatch.by_rank = infos;
  // The recorder of a group that is part of a larger one holds the steps of the larger group's collectives.
  if (names.own()) mismatch.before = recorder.entries();
  std::erase_if(mismatch.before, [&](const CollectiveInfo& each) { return each.sequence >= infos[0].sequence; });
  Verdict verdict = collective_mismatch(mismatch, names);
  const std::string message = verdict.message;
  return CollectiveError(message, {std::move(verdict)});
}

DiagnosedAs<PeerError> lost_rank_error(const WaitingRank& waiting, const RankStatus& lost, const Departure& end,
                                       std::string_view remark) {
  const std::string message =
      fmt::format("rank {} {}; rank {} was waiting for it in {}; {}{}", lost.rank, in_words(end), waiting.rank,
                  in_words(waiting.collective), in_words(lost), remark);
  return DiagnosedAs<PeerError>(message, {rank_lost(waiting.collective, lost, end)});
}

DiagnosedAs<TimeoutError> missing_ranks_error(const WaitingRank& waiting, std::span<const RankStatus> missing,
                                              std::string_view time_out) {
  std::vector<std::string> ranks;
  std::vector<std::string> places;
  for (const RankStatus& each : missing) {
    ranks.push_back(each.rank.in_words());
    places.push_back(in_words(each));
  }
  constexpr size_t kMost = 8;
  const std::string message =
      fmt::format("{} in {} on rank {}: waiting for rank {}; {}", time_out, in_words(waiting.collective), waiting.rank,
                  first_of(ranks, kMost, ", "), first_of(places, kMost, "; "));
  return DiagnosedAs<TimeoutError>(message, {collective_timeout(waiting.collective, missing)});
}

DiagnosedAs<TimeoutError> late_step_error(const WaitingRank& waiting, const DistError& error, std::string_view time_out,
                                          std::string_view where) {
  std::vector<Verdict> verdicts = verdicts_of(error);
  const std::string what = verdicts.empty() ? error.what()
                                            : fmt::format("waiting for rank {}; {}", fmt::join(verdicts[0].ranks, ", "),
                                                          verdicts[0].cause.text);
  const std::string message =
      fmt::format("{} in {} on rank {}, {}: {}", time_out, in_words(waiting.collective), waiting.rank, where, what);
  return DiagnosedAs<TimeoutError>(message, std::move(verdicts));
}

std::exception_ptr reported_error(const WaitingRank& waiting, const RankName& by, const std::string& text,
                                  std::vector<Verdict> verdicts) {
  std::string found = text.substr(0, text.find(kFix));  // it comes last
  if (verdicts.empty()) {
    RankStatus place;
    place.rank = by;
    found = fmt::format("rank {} {}", by, in_words(Departure{Departure::How::Failed, found}));
    verdicts = {rank_lost(waiting.collective, place, {Departure::How::Failed, text})};
  }
  const std::string kind = verdicts[0].kind;
  if (kind == "collective_mismatch") return std::make_exception_ptr(CollectiveError(text, std::move(verdicts)));
  const std::string message =
      fmt::format("{}; rank {} was told so in {}", found, waiting.rank, in_words(waiting.collective));
  if (kind == "collective_timeout")
    return std::make_exception_ptr(DiagnosedAs<TimeoutError>(message, std::move(verdicts)));
  return std::make_exception_ptr(DiagnosedAs<PeerError>(message, std::move(verdicts)));
}

std::vector<Verdict> verdicts_of(const std::exception& error) {
  const auto* diagnosed = dynamic_cast<const Diagnosed*>(&error);
  return diagnosed ? diagnosed->verdicts() : std::vector<Verdict>();
}

std::exception_ptr group_gone_error() {
  return std::make_exception_ptr(
      DistError("the process group was destroyed before this collective was complete: keep the group until what was "
                "posted on it has been waited for"));
}

}  // namespace brigade::dist
