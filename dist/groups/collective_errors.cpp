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
  const Verdict verdict = collective_mismatch(mismatch, names);
  return CollectiveError(in_words(verdict), {verdict});
}

namespace {

// The text of the verdict for one rank: another first line, and a remark.
std::string text_for(Verdict verdict, const std::string& what, std::string_view remark) {
  verdict.cause.note += remark;
  set_message(verdict, what);
  return in_words(verdict);
}

}  // namespace

DiagnosedAs<PeerError> lost_rank_error(const WaitingRank& waiting, const RankStatus& lost, const Departure& end,
                                       std::string_view remark) {
  const Verdict verdict = rank_lost(waiting.collective, lost, end);
  const std::string what = end.how == Departure::How::GaveUp
                               ? fmt::format("Rank {} {} (rank {}) in {}", lost.rank, way_of(end), waiting.rank,
                                             in_words(waiting.collective))
                               : fmt::format("Rank {} {}; rank {} waited for it in {}", lost.rank, way_of(end),
                                             waiting.rank, in_words(waiting.collective));
  return DiagnosedAs<PeerError>(text_for(verdict, what, remark), {verdict});
}

DiagnosedAs<TimeoutError> missing_ranks_error(const WaitingRank& waiting, std::span<const RankStatus> missing,
                                              std::string_view time_out) {
  const Verdict verdict = collective_timeout(waiting.collective, missing);
  const std::string what = fmt::format("{} (rank {} {})", headline(verdict), waiting.rank, time_out);
  return DiagnosedAs<TimeoutError>(text_for(verdict, what, ""), {verdict});
}

DiagnosedAs<TimeoutError> late_step_error(const WaitingRank& waiting, const DistError& error, std::string_view time_out,
                                          std::string_view where) {
  std::vector<Verdict> verdicts = verdicts_of(error);
  const std::string how =
      fmt::format("rank {} {} in {}, {}", waiting.rank, time_out, in_words(waiting.collective), where);
  const std::string text =
      verdicts.empty() ? fmt::format("{}: {}", how, error.what()) : text_for(verdicts[0], headline(verdicts[0]), how);
  return DiagnosedAs<TimeoutError>(text, std::move(verdicts));
}

std::exception_ptr reported_error(const WaitingRank& waiting, const RankName& by, const std::string& text,
                                  std::vector<Verdict> verdicts) {
  if (verdicts.empty()) {
    RankStatus place;
    place.rank = by;
    return std::make_exception_ptr(lost_rank_error(waiting, place, {Departure::How::Failed, text}));
  }
  const std::string kind = verdicts[0].kind;
  if (kind == "collective_mismatch") return std::make_exception_ptr(CollectiveError(text, std::move(verdicts)));
  const size_t advice = std::min(text.size(), text.find(kDo));  // it comes last
  const std::string message = fmt::format("{} (rank {} was told so in {}){}", text.substr(0, advice), waiting.rank,
                                          in_words(waiting.collective), text.substr(advice));
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
