// Runs benchmarks on ranks: one job on several backends, and the samples of all ranks.
#pragma once

#include <brigade/lab/bench/spread.h>
#include <brigade/lab/rank_job.h>

#include <nlohmann/json_fwd.hpp>

#include <map>
#include <memory>
#include <string>
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
// has started this process as one of several ranks, the run uses those ranks (joined.h); throws ValueError when
// `ranks` is another number. The job gets `arguments` (an object) with the run's "backends" added, and returns
// JSON. Throws what run_rank_job and require_ok throw.
std::vector<RanksRun> run_on_ranks(const std::string& job, const nlohmann::json& arguments,
                                   const std::vector<std::string>& backends, int ranks);

// Inside the job: makes a group for each of the "backends" in its arguments; `group` is the first of them.
// Collective.
std::map<std::string, dist::ProcessGroupPtr> groups_of(const dist::ProcessGroupPtr& group,
                                                       const nlohmann::json& arguments);

}  // namespace brigade::lab::bench
