// Jobs that run on every rank: the same function on threads of this process, or in processes that this program
// starts from its own executable.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <functional>
#include <string>
#include <vector>

namespace brigade::lab {

// Gets the group and its arguments as text; returns its result as text.
using RankJob = std::function<std::string(dist::ProcessGroupPtr group, const std::string& arguments)>;

// A static object that registers a job by name, so that a rank process can find it.
struct AddRankJob {
  AddRankJob(const std::string& name, RankJob job);
};

struct RankResult {
  bool ok = false;
  std::string text;   // the result, or the text of the error
  std::string error;  // "" for none, or the kind of the error ("ReductionError", "PeerError", ...)
  // Kind and cause of the error's first verdict (docs/reference/verdicts.md), if it has one: "unused_parameters", "detached".
  std::string verdict, cause;
};

struct RankJobOutcome {
  int exit_code = 0;  // 0, or the exit code of the first rank that failed
  std::vector<RankResult> ranks;
  std::string summary;  // which rank failed first, and its last words, from the launcher
};

// Thrown by run_rank_job when a signal has ended its ranks; the program must end, too, with 128 + signal. Not a
// std::exception, so that no handler takes it for the error of a rank.
struct EndedBySignal {
  int signal = 0;
  std::string in_words() const;  // "ended by signal 2 (Interrupt)"
};

// Runs a job on `ranks` ranks. `backend`: see backends_in_words. An error that a job throws is a result (ok =
// false), not a failure of the run. Throws DistError when a rank ends without a result (it names the rank, its exit
// code or signal, and its last words); ValueError in a process that is one of several ranks of a launcher, since
// each of them would start ranks of its own; EndedBySignal. Rank `stdin_rank`, unless it is -1, reads this
// process's standard input.
RankJobOutcome run_rank_job(const std::string& job, const std::string& arguments, const std::string& backend, int ranks,
                            std::chrono::milliseconds timeout = std::chrono::seconds(30), int stdin_rank = -1);

// The first rank that failed by itself, not because of a peer; if there is none, the first that failed; -1 if all
// succeeded.
int first_failed(const RankJobOutcome& outcome);
// Throws the error of the first failed rank: ValueError, IoError and DeviceError as such, every other as DistError.
void require_ok(const RankJobOutcome& outcome);

// The world size when a launcher has started this process as a rank (dist/rendezvous/launch/environment.h), else 0.
// Throws ValueError when the variables of a launcher are incomplete.
int launched_ranks();

// Runs a job as one rank of a launcher. `backend` may also be "hosts" or "auto". Throws what init_process_group
// throws.
struct JoinedJob {
  RankResult result;
  int rank = 0;
  int ranks = 0;
  std::string backend;  // of the group
};
JoinedJob join_rank_job(const std::string& job, const std::string& arguments, const std::string& backend,
                        std::chrono::milliseconds timeout = std::chrono::seconds(30));
// Runs a job on this rank of a group. An error that the job throws is a result.
RankResult run_rank_job_here(const std::string& job, const dist::ProcessGroupPtr& group, const std::string& arguments);
// The message of the error in this rank's result. When all ranks raise the same error, only rank 0 gives it in
// full.
std::string error_in_words(const JoinedJob& joined);
// Throws the error of this rank, with the message of error_in_words(), as the overload for all ranks does.
void require_ok(const JoinedJob& joined);

// Runs the hidden subcommand of a rank process: `brigade rank-job NAME`. Returns the exit status.
int rank_job_main(const std::string& job);

// The index of this rank among those on its host, as the launcher says; its global rank if the launcher does not
// say.
int local_rank(const dist::ProcessGroup& group);

// BRIGADE_TIMEOUT, or 30 s when it is not set. Throws ValueError when it or BRIGADE_MEETING_TIMEOUT is not a time.
std::chrono::milliseconds collective_timeout();

// Throws ValueError that lists the known backends when the name is unknown.
void check_backend(const std::string& backend);
// "threads, auto, shm, gloo, hosts": for the help of an option.
std::string backends_in_words();

}  // namespace brigade::lab
