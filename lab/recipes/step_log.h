// What is told of each step of a recipe: its losses, how long it took, what it sent. It goes to the
// result, to the progress bar, and as a line of JSON to the file of --metrics.
#pragma once

#include <brigade/lab/recipes/recipe.h>
#include <brigade/lab/terminal.h>

#include <chrono>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace brigade::lab {

// One object per training, on every rank:
//   StepLog log(group, options, steps, progress.steps);
//   for (...) {
//     log.begin();
//     ...                              // forward, backward, optimizer
//     log.end({{"loss", loss}});
//   }
//   log.finish(result);
class StepLog {
 public:
  // `steps`: of the whole training; `done` of them before this run. A training that is resumed keeps the lines of those
  // steps, and drops what a run that was killed has written beyond its checkpoint: the file is that of a training that was
  // never interrupted. Throws IoError when it cannot be written.
  StepLog(dist::ProcessGroupPtr group, const TrainOptions& options, int64_t steps, int64_t done = 0);
  ~StepLog();
  StepLog(const StepLog&) = delete;
  StepLog& operator=(const StepLog&) = delete;

  void begin();
  // Collective: losses, which have one element each, are averaged over the ranks for the report. Returns the mean of the
  // first.
  double end(const std::vector<std::pair<std::string, Tensor>>& losses);
  // Training is over, evaluation comes: fills in losses, times and traffic.
  void finish(TrainResult& result) const;
  // The last line of the file: {"metrics": {...}}.
  void tell(const TrainResult& result);

 private:
  using Clock = std::chrono::steady_clock;
  void write_line(const std::string& line);

  dist::ProcessGroupPtr group_;
  std::string file_name_;
  std::ofstream file_;
  ProgressBar bar_;
  int64_t done_;
  Clock::time_point began_ = Clock::now();
  Clock::time_point step_began_;
  uint64_t collectives_before_ = 0;
  uint64_t collectives_ = 0;
  double bytes_ = 0;
  std::vector<double> loss_, step_ms_;
};

}  // namespace brigade::lab
