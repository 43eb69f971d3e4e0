// Benchmarks on ranks: one job on several backends, and the samples of all ranks.
#pragma once

#include <brigade/lab/bench/spread.h>
#include <brigade/lab/rank_job.h>

#include <nlohmann/json_fwd.hpp>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace brigade::lab::bench {

// What the ranks of one run have answered.
class RanksRun {
 public:
  RanksRun(std::vector<std::string> backends, nlohmann::json ranks);
  RanksRun(RanksRun&&) noexcept;
  ~RanksRun();

  const std::vector<std::string>& backends() const noexcept { return backends_; }
  // Rank r's result.
  const nlohmann::json& rank(size_t r) const;
  // Of all ranks: the list `field` of their row `row`, where the result is a list of rows.
  Samples samples(size_t row, const char* field = "us") const;

 private:
  std::vector<std::string> backends_;
  std::unique_ptr<nlohmann::json> ranks_;
};

// Runs the rank job (AddRankJob) on `ranks` ranks. Backends whose ranks are processes run together,
// in the same processes, so that the job can let them take turns; ranks that are threads have a run of
// their own. Where a launcher has started this process as one of several ranks, they are the ranks of the
// run (joined.h); throws ValueError where `ranks` are not theirs. The job gets `arguments` (an object) with the run's "backends", and returns JSON. Throws
// what run_rank_job and require_ok throw.
std::vector<RanksRun> run_on_ranks(const std::string& job, const nlohmann::json& arguments,
                                   const std::vector<std::string>& backends, int ranks);

// In the job: a group for each of the "backends" of its arguments; `group` is the first of them. Collective.
std::map<std::string, dist::ProcessGroupPtr> groups_of(const dist::ProcessGroupPtr& group,
                                                       const nlohmann::json& arguments);

}  // namespace brigade::lab::bench
