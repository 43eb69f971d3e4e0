// The rank job of `brigade bench collectives`: all ways of all collectives over all sizes, in turns.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <string>

namespace brigade::lab::bench {

// A rank job (run_on_ranks). Arguments: {"backends", "collectives": [names], "sizes": [bytes], "dtypes", "ops":
// [names], "memory": ["group", "plain"], "place": ["out", "in"], "in_flight": [calls], "family": "bandwidth" |
// "latency" | "overlap", "progress": calls of progress() during the computation, "calls": calls per sample, 0 for
// as many as keep a round short, "check": "every" | "first" round, "plain_loops": whether to measure them next to
// each in-place all_reduce of ranks that share memory, "limits": RoundLimits}.
//
// Result: a row for each size and way: {"key": {"collective", "backend", "ranks", "dtype", "op", "bytes", "count",
// "in_place", "memory", "in_flight", and "plain_loops": true for plain loops}, "us": [one per round], "wrong":
// wrong elements on this rank, "rounds", "noise"}; for overlap also "compute_us" and "comm_us", one per round.
inline constexpr const char* kCollectivesJob = "bench-collectives";

// The job itself.
std::string collectives_job(const dist::ProcessGroupPtr& group, const std::string& arguments);

}  // namespace brigade::lab::bench
