// Finds the rank that failed first, from how the ranks of a node ended and from their error files
// (dist/errors/error_file.h).
#pragma once

#include <brigade/dist/errors/error_file.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace brigade::dist {

struct RankEnd {
  int rank = 0;
  int64_t time_ns = 0;  // when the launcher saw the end, on the clock of ErrorRecord
  int exit_code = 0;
  int signal = 0;
  bool was_ended = false;  // it still ran when the launcher started to end the ranks
  std::optional<ErrorRecord> error;
};

struct FirstFailure {
  int rank = -1;                // -1: none failed
  int exit_code = 0;            // for the launcher; a victim's if `left` or `awaited`
  bool left = false;            // it ended with status 0 while others still needed it
  bool awaited = false;         // others gave up on it while it still ran, and it left no error
  std::vector<int> because_of;  // if its error is a consequence: the ranks that it names as the cause
};

// Returns the rank with the earliest error of its own. A rank that failed without an error file counts with the time of
// its end, unless the launcher ended it. If there are only consequences: the rank of this node that the earliest one
// names, and that had ended with status 0, or was ended by the launcher and left no error file (it was stopped, or
// looped); else the rank with the earliest consequence.
FirstFailure find_first_failure(std::span<const RankEnd> ranks);

}  // namespace brigade::dist
