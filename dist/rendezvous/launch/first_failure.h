// Which rank was the first to fail: from how the ranks of a node ended and the error files that
// they left (dist/errors/error_file.h).
#pragma once

#include <brigade/dist/errors/error_file.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace brigade::dist {

struct RankEnd {
  int rank = 0;
  int64_t time_ns = 0;  // when the launcher saw it, on the clock of ErrorRecord
  int exit_code = 0;
  int signal = 0;
  bool told_to_end = false;  // it still ran when the launcher began to end the ranks
  std::optional<ErrorRecord> error;
};

struct FirstFailure {
  int rank = -1;                // -1: none failed
  int exit_code = 0;            // for the launcher; that of a victim where `left` or `awaited`
  bool left = false;            // it ended with status 0 while others still needed it
  bool awaited = false;         // others gave up on it while it still ran, and it says nothing itself
  std::vector<int> because_of;  // the ranks that its error names as the cause, where it is no own one
};

// The earliest own error; a rank that failed without a file has one at its end, unless it was told
// to end. Where there are consequences only: the rank of this node that the earliest names and that
// ended with status 0 before, or that was told to end and has left no word (it was stopped, or
// looped); else the rank with the earliest.
FirstFailure find_first_failure(std::span<const RankEnd> ranks);

}  // namespace brigade::dist
