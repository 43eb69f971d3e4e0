// Benchmarks of ways to take one training step: `brigade bench NAME`. The ways are timed in turns
// within one run, on ranks that are threads, so that what else the machine does meets all of them
// alike.
#pragma once

#include <brigade/dist/groups/process_group.h>
#include <brigade/lab/bench/benchmark.h>

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
  // Of the timed steps.
  std::vector<double> ms = {};
  uint64_t collectives = 0;
  double bytes = 0;  // that this rank gave to them; NaN where the flight recorder has not kept all of a step
};

// The size of the model and the number of timed steps of each way.
struct StepsOptions {
  int layers = 0;
  int64_t width = 0;
  int steps = 0;
};

struct StepsBenchmark {
  std::string name;
  std::string about;
  std::string footer;  // more about it, under the examples
  StepsOptions usual;
  int least_layers = 1;
  int width_multiple_of = 1;
  int warm_up = 6;
  // Of one rank.
  std::function<std::vector<Way>(const dist::ProcessGroupPtr& group, const StepsOptions& options)> ways;
};

void add_steps_benchmark(Command& bench, const StepsBenchmark& benchmark);

// Every way's step `steps` times after `warm_up` more; the order turns, so that no way always comes
// first. Collective.
void interleave(dist::ProcessGroup& group, std::vector<Way>& ways, int warm_up, int steps);

}  // namespace brigade::lab::bench
