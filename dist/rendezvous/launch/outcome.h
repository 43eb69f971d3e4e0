// The outcome of a job: its exit status and its summary. Pure functions of how the ranks ended.
#pragma once

#include <brigade/dist/rendezvous/launch/first_failure.h>
#include <brigade/dist/rendezvous/launch/launcher.h>

#include <chrono>
#include <string>
#include <vector>

namespace brigade::dist {

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
