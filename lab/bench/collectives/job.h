// What each rank does in `brigade bench collectives`: all ways of all collectives over all sizes, in turns.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <string>

namespace brigade::lab::bench {

// A rank job (run_on_ranks). Arguments: {"backends", "collectives": [names], "sizes": [bytes], "dtypes",
// "ops": [names], "memory": ["group", "plain"], "place": ["out", "in"], "in_flight": [calls], "family":
// "bandwidth" | "latency" | "overlap", "progress": calls of progress() while it computes, "calls": in a
// sample of a round, 0 for as many as keep it short, "check": "every" | "first" round, "plain_loops": whether they
// stand beside each all_reduce in place of ranks that share memory, "limits": RoundLimits}.
//
// Result: a row for each size and way: {"key": {"collective", "backend", "ranks", "dtype", "op", "bytes",
// "count", "in_place", "memory", "in_flight", and "plain_loops": true for those}, "us": [one per
// round], "wrong": elements, of this rank, "rounds", "noise"}; for overlap also "compute_us" and "comm_us", one per round.
inline constexpr const char* kCollectivesJob = "bench-collectives";

// The job itself.
std::string collectives_job(const dist::ProcessGroupPtr& group, const std::string& arguments);

}  // namespace brigade::lab::bench
