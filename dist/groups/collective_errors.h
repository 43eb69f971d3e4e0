// The errors of a collective that cannot come to its end: the same types, ranks and words whichever
// transport runs. Pure functions of what a rank knows; announced as they are made (Diagnosed).
#pragma once

#include <brigade/dist/diagnosis/collective.h>

#include <exception>
#include <span>
#include <string>
#include <string_view>

namespace brigade::dist {

// `by_rank`: what each rank is in, rank order; at least two differ.
CollectiveError mismatch_error(std::span<const CollectiveInfo> by_rank, const RankNames& names);

// What a rank that waits knows of itself.
struct WaitingRank {
  int rank = 0;  // as errors call it
  CollectiveInfo collective;
};

// `lost` is not coming: `how` is "died (process 12 has ended)", "left the group", or "failed: "
// with the words of its exception. `remark` is put behind the message.
DiagnosedAs<PeerError> lost_rank_error(const WaitingRank& waiting, const Whereabouts& lost, const std::string& how,
                                       std::string_view remark = {});

// `missing` did not come. `time_out` begins the message: "timed out after 100 ms".
DiagnosedAs<TimeoutError> missing_ranks_error(const WaitingRank& waiting, std::span<const Whereabouts> missing,
                                              std::string_view time_out);

// For a Work whose group is destroyed before it is complete.
std::exception_ptr group_gone_error();

}  // namespace brigade::dist
