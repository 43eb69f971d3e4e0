// Errors of collectives that cannot complete: the same types, ranks and texts on every transport. Pure functions of
// what a rank knows; each error is announced on construction (Diagnosed).
#pragma once

#include <brigade/dist/errors/collective.h>

#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace brigade::dist {

// `by_rank`: the status of each rank, in rank order; at least two differ. `recorder`: this rank's, for the collectives
// that all ranks did together before the mismatch.
CollectiveError mismatch_error(std::span<const RankStatus> by_rank, const FlightRecorder& recorder,
                               const RankNames& names);

// The rank that waits, and its collective.
struct WaitingRank {
  RankName rank;
  CollectiveInfo collective;
};

// `lost` will not arrive, because of `end`. `remark` is appended to the message.
DiagnosedAs<PeerError> lost_rank_error(const WaitingRank& waiting, const RankStatus& lost, const Departure& end,
                                       std::string_view remark = {});

// The ranks `missing` did not arrive. `time_out` begins the message: "timed out after 100 ms".
DiagnosedAs<TimeoutError> missing_ranks_error(const WaitingRank& waiting, std::span<const RankStatus> missing,
                                              std::string_view time_out);

// Rewrites `error`, which comes from a step of the collective with a shorter timeout, as an error of the whole
// collective. `where`: "inside its host".
DiagnosedAs<TimeoutError> late_step_error(const WaitingRank& waiting, const DistError& error, std::string_view time_out,
                                          std::string_view where);

// The error to throw on this rank for an error that rank `by` has found and published, with its verdicts: TimeoutError,
// CollectiveError or PeerError, by the kind of the first verdict. Without verdicts, `text` is the message of the
// exception that made that rank fail.
std::exception_ptr reported_error(const WaitingRank& waiting, const RankName& by, const std::string& text,
                                  std::vector<Verdict> verdicts);

// The verdicts of `error`; empty when it has none.
std::vector<Verdict> verdicts_of(const std::exception& error);

// For a Work whose group is destroyed before the Work is complete.
std::exception_ptr group_gone_error();

}  // namespace brigade::dist
