// Work that runs on every rank: the same function on threads of this process, or in processes that
// this program starts of itself.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <functional>
#include <string>
#include <vector>

namespace brigade::lab {

// Gets the group and a text with its arguments; returns a text with its result.
using RankJob = std::function<std::string(dist::ProcessGroupPtr group, const std::string& arguments)>;

// A static object that makes a job known by name, so that a rank process can find it.
struct AddRankJob {
  AddRankJob(const std::string& name, RankJob job);
};

struct RankResult {
  bool ok = false;
  std::string text;   // the result, or the text of the error
  std::string error;  // "": none; else the kind of the error ("ReductionError", "PeerError", ...)
  // Of the first verdict of the error (docs/verdicts.md), where it has one: "unused_parameters", "detached".
  std::string verdict, cause;
};

struct RankJobOutcome {
  int exit_code = 0;  // 0, or that of the first rank that failed
  std::vector<RankResult> ranks;
  std::string summary;  // who failed first and its last words, from the launcher
};

// What run_rank_job throws when a signal has ended its ranks: the program is to end, too, with 128 +
// signal. No std::exception: nobody takes it for the error of a rank.
struct EndedBySignal {
  int signal = 0;
  std::string in_words() const;  // "ended by signal 2 (Interrupt)"
};

// `backend`: see backends_in_words. An error that a job throws is a result (ok
// = false), not a failure of the run. Throws DistError when a rank ends without a result (it names
// the rank, its exit code or signal, and its last words), and ValueError in a process that is one
// of several ranks of a launcher: each of them would start ranks of its own; EndedBySignal. Rank `stdin_rank`, where
// it is not -1, reads this process's standard input.
RankJobOutcome run_rank_job(const std::string& job, const std::string& arguments, const std::string& backend, int ranks,
                            std::chrono::milliseconds timeout = std::chrono::seconds(30), int stdin_rank = -1);

// The first rank that failed by itself, not because of a peer; of those the first where there is
// none; -1 where all are well.
int first_failed(const RankJobOutcome& outcome);
// Throws the error of that rank: ValueError, IoError and DeviceError as
// such, every other as DistError.
void require_ok(const RankJobOutcome& outcome);

// When this process is a rank that a launcher has started (dist/rendezvous/launch/environment.h): the
// world size, else 0. Throws ValueError when a launcher shows whose variables are not complete.
int launched_ranks();

// The work of this rank, when it has been launched. `backend` may also be "hosts" or "auto". Throws
// what init_process_group throws.
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
// What this rank says of the error in its result: the text. Where all ranks raise the same, only
// rank 0 says it in full.
std::string error_in_words(const JoinedJob& joined);
// Throws the error of this rank, with these words, as require_ok() of all ranks does.
void require_ok(const JoinedJob& joined);

// The hidden subcommand in which a rank process ends up: `brigade rank-job NAME`. Returns the exit
// status.
int rank_job_main(const std::string& job);

// The number of this rank among those on its host, as the launcher says; its rank where it does
// not.
int local_rank(const dist::ProcessGroup& group);

// BRIGADE_TIMEOUT, or 30 s where it is not set. Throws ValueError for what is no time, in it or in
// BRIGADE_MEETING_TIMEOUT.
std::chrono::milliseconds collective_timeout();

// Known backends; throws ValueError that lists them for another name.
void check_backend(const std::string& backend);
// "threads, auto, shm, gloo, hosts": for the help of an option.
std::string backends_in_words();

}  // namespace brigade::lab
