// What became of a job: its exit status and its summary. Pure functions of how the ranks ended.
#pragma once

#include <brigade/dist/rendezvous/launch/first_failure.h>
#include <brigade/dist/rendezvous/launch/launcher.h>

#include <chrono>
#include <string>
#include <vector>

namespace brigade::dist {

// How a process ended, for `status` as waitpid says it.
RankOutcome rank_outcome(int rank, int status);

// "exited with status 3", "was ended by signal 9 (Killed)".
std::string how_it_ended(const RankOutcome& rank);

// Ranks that still ran when the others had ended, and how long they had.
struct Overdue {
  std::vector<int> ranks;
  std::chrono::milliseconds exit_timeout{0};
};

// Who failed first, how, and its last words. `rank`: the one that `first` names.
std::string summary_of(const RankOutcome& rank, const FirstFailure& first, const Overdue& overdue);

// Whoever ended because the launcher was told to end is no failure: the status is 128 + signal,
// unless a rank has caught the signal and ended with a status of its own. `failed_before`: a rank
// had failed when the signal came, and the outcome stays as it is.
void blame_signal(LaunchOutcome& outcome, int signal, bool failed_before);

}  // namespace brigade::dist
