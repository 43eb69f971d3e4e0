// Runs benchmarks on ranks: one job on several backends, and the samples of all ranks.
#pragma once

#include <brigade/dist/ddp/model_averaging.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/lab/bench/spread.h>
#include <brigade/lab/rank_job.h>

#include <nlohmann/json_fwd.hpp>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace brigade::lab::bench {

// The answers of the ranks of one run.
class RanksRun {
 public:
  RanksRun(std::vector<std::string> backends, nlohmann::json ranks);
  RanksRun(RanksRun&&) noexcept;
  ~RanksRun();

  const std::vector<std::string>& backends() const noexcept { return backends_; }
  // Rank r's result.
  const nlohmann::json& rank(size_t r) const;
  // The list `field` of row `row` on all ranks. The result of each rank must be a list of rows.
  Samples samples(size_t row, const char* field = "us") const;

 private:
  std::vector<std::string> backends_;
  std::unique_ptr<nlohmann::json> ranks_;
};

// Runs the rank job (AddRankJob) on `ranks` ranks. Backends whose ranks are processes run together, in the same
// processes, so that the job can alternate between them; the threads backend has a run of its own. When a launcher
// has started this process as one of several ranks, the run uses those ranks (below); throws ValueError when
// `ranks` is another number. The job gets `arguments` (an object) with the run's "backends" added, and returns
// JSON. Throws what run_rank_job and require_ok throw.
std::vector<RanksRun> run_on_ranks(const std::string& job, const nlohmann::json& arguments,
                                   const std::vector<std::string>& backends, int ranks);

// Inside the job: makes a group for each of the "backends" in its arguments; `group` is the first of them.
// Collective.
std::map<std::string, dist::ProcessGroupPtr> groups_of(const dist::ProcessGroupPtr& group,
                                                       const nlohmann::json& arguments);

// --- Benchmarks whose ranks a launcher has started on one or several hosts: `brigade run`, torchrun, mpirun, srun.
//
// Every rank runs the same command and takes part in the same jobs. Every rank gets the answers of all ranks, so that
// all take the same decisions; rank 0 prints and writes the files.

// The number of ranks of the launcher's job; 0 without a launcher, or when it has started only this process.
int joined_ranks();
// Whether all ranks are on this host, as far as the launcher says; true without a launcher.
bool are_on_one_host();
// Whether this process is rank 0 of the launcher's job, or the only one of its command.
bool is_speaker();
// The group of these ranks over a backend, made at the first call and kept. Collective. "auto" is the fastest
// backend between these ranks. Throws what init_process_group throws, and ValueError for the backend threads.
dist::ProcessGroupPtr joined_group(const std::string& backend);
// Runs the job here and returns the answers of all ranks, by rank. Throws the job's error, with a message that
// names this rank.
std::vector<std::string> run_joined(const std::string& job, const std::string& arguments,
                                    const dist::ProcessGroupPtr& group);
// Whether joined_group() has been called, that is, this process measures as one of the launcher's ranks.
bool has_joined();
// Destroys the kept groups. Call it at the end of main, while everything that they use still exists.
void leave_joined_groups();

// --- Pins each rank of a benchmark to a core of its own.

// Pins the calling thread, and all threads that it starts from now on, to core number `rank` of those that this
// process may use, modulo their count. Kernels called from this thread run on one thread. Throws DistError when the
// system call fails.
void pin_rank(int rank);

// --- Keeps replicas whose gradients stay local on purpose from being reported as never averaged when training ends.

// Call it after each step. It averages only after the first one.
inline dist::PeriodicModelAverager averaged_once(dist::ProcessGroupPtr group) {
  return {std::move(group), uint64_t{1} << 40};
}

}  // namespace brigade::lab::bench
