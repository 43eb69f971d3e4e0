// The rank job of the benchmarks of training steps.
#pragma once

#include <brigade/lab/bench/steps.h>

namespace brigade::lab::bench {

// A rank job (run_on_ranks) on one backend. Arguments: {"benchmark": its name, "layers", "width", "limits":
// RoundLimits}. Result: a row for each way, {"mode", "us": [one per step], "compared_with": [positions of rows],
// "collectives" per step, "bytes": per step, contributed by this rank, or null when the flight recorder has not
// kept all of a step; "rounds", "noise"}.
inline constexpr const char* kStepsJob = "bench-steps";

// All benchmarks that static objects have added.
const std::vector<StepsBenchmark>& steps_benchmarks();

}  // namespace brigade::lab::bench
