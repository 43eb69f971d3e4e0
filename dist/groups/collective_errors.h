// The errors of a collective that cannot come to its end: the same types, ranks and words whichever
// transport runs. Pure functions of what a rank knows; announced as they are made (Diagnosed).
#pragma once

#include <brigade/dist/errors/collective.h>

#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace brigade::dist {

// `by_rank`: where each rank is, rank order; at least two differ. `recorder`: of this rank, for what
// all did together before.
CollectiveError mismatch_error(std::span<const Whereabouts> by_rank, const FlightRecorder& recorder,
                               const RankNames& names);

// What a rank that waits knows of itself.
struct WaitingRank {
  RankName rank;
  CollectiveInfo collective;
};

// `lost` is not coming, because of `end`. `remark` is put behind the message.
DiagnosedAs<PeerError> lost_rank_error(const WaitingRank& waiting, const Whereabouts& lost, const Departure& end,
                                       std::string_view remark = {});

// `missing` did not come. `time_out` begins the message: "timed out after 100 ms".
DiagnosedAs<TimeoutError> missing_ranks_error(const WaitingRank& waiting, std::span<const Whereabouts> missing,
                                              std::string_view time_out);

// `error` is that of a step of the collective, which had less time: speaks of the collective.
// `where`: "inside its host".
DiagnosedAs<TimeoutError> late_step_error(const WaitingRank& waiting, const DistError& error, std::string_view time_out,
                                          std::string_view where);

// What another rank has found and said, raised here, with its verdicts: TimeoutError,
// CollectiveError or PeerError, as the first of them has it. `text` without verdicts is that of
// the exception by which that rank failed.
std::exception_ptr told_error(const WaitingRank& waiting, const RankName& by, const std::string& text,
                              std::vector<Verdict> verdicts);

// Those of an error that has any.
std::vector<Verdict> verdicts_of(const std::exception& error);

// For a Work whose group is destroyed before it is complete.
std::exception_ptr group_gone_error();

}  // namespace brigade::dist
