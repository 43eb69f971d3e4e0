// Benchmarks of ways to take one training step: `brigade bench NAME`. The ways alternate within one run of the same
// ranks, so that other load on the machine affects all of them equally.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace brigade::lab::bench {

struct Way {
  std::string name;
  std::shared_ptr<void> owns;  // model, wrapper, optimizer
  std::function<void()> step;
  std::vector<size_t> compared_with = {};  // positions of other ways
};

// The size of the model.
struct StepsOptions {
  int layers = 0;
  int64_t width = 0;
};

struct StepsBenchmark {
  std::string name;
  std::string about;
  std::string footer;  // more about it, under the examples
  StepsOptions usual;
  int steps = 60;  // default steps of each way; more of them while the noise is above the bound
  int least_layers = 1;
  int width_multiple_of = 1;
  int warm_up = 6;
  // Makes the ways of one rank.
  std::function<std::vector<Way>(const dist::ProcessGroupPtr& group, const StepsOptions& options)> ways;
};

// A static object that adds `brigade bench NAME` and registers the benchmark for the ranks.
struct AddStepsBenchmark {
  explicit AddStepsBenchmark(StepsBenchmark benchmark);
};

// --- The rank job of the benchmarks of training steps.

// A rank job (run_on_ranks) on one backend. Arguments: {"benchmark": its name, "layers", "width", "limits":
// RoundLimits}. Result: a row for each way, {"mode", "us": [one per step], "compared_with": [positions of rows],
// "collectives" per step, "bytes": per step, contributed by this rank, or null when the flight recorder has not
// kept all of a step; "rounds", "noise"}.
inline constexpr const char* kStepsJob = "bench-steps";

// All benchmarks that static objects have added.
const std::vector<StepsBenchmark>& steps_benchmarks();

}  // namespace brigade::lab::bench
