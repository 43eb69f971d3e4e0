// The outcome of a job: the rank that failed first, the exit status and the summary.
#pragma once

#include <brigade/dist/errors/error_file.h>
#include <brigade/dist/rendezvous/launch/launcher.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace brigade::dist {

// --- Finds the rank that failed first, from how the ranks of a node ended and from their error files
// (dist/errors/error_file.h).

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

// --- The outcome of a job: its exit status and its summary. Pure functions of how the ranks ended.

// How a process ended; `status` is as returned by waitpid.
RankOutcome rank_outcome(int rank, int status);

// "exited with status 3", "was ended by signal 9 (Killed)".
std::string how_it_ended(const RankOutcome& rank);

// Ranks that still ran after the others had ended, and the time limit that they exceeded.
struct Overdue {
  std::vector<int> ranks;
  std::chrono::milliseconds exit_timeout{0};
};

// The rank that failed first, how, and its last lines. `rank`: the outcome of the rank in `first`.
std::string summary_of(const RankOutcome& rank, const FirstFailure& first, const Overdue& overdue);

// Attributes the end of the job to a signal to the launcher. Ranks that ended because of it are not failures: the
// status is 128 + signal, unless a rank caught the signal and ended with its own status. `failed_before`: a rank had
// failed before the signal, which keeps the exit status and the summary.
void blame_signal(LaunchOutcome& outcome, int signal, bool failed_before);

}  // namespace brigade::dist
