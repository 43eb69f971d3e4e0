// The results of `brigade bench collectives` in familiar form: the columns of nccl-tests and of the OSU
// micro-benchmarks.
#pragma once

#include <brigade/dist/groups/process_group.h>
#include <brigade/lab/bench/plot.h>
#include <brigade/lab/bench/spread.h>

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <string>
#include <vector>

namespace brigade::lab::bench {

// One way at one size, on all ranks.
struct Measured {
  std::shared_ptr<const nlohmann::json> key;  // of the job, below
  Samples us;
  int64_t wrong = 0;
  Samples compute_us = {}, comm_us = {};  // for overlap
  std::string beside_baseline = "";       // "0.97x"

  bool is_plain_loops() const;
};

// GB/s of the median time.
double algbw_of(const Measured& one);
double busbw_of(const Measured& one);

// The hidden part of the communication, in percent, per round, as OSU defines it: 100 * (1 - (overall - compute) /
// communication), clamped to 0 to 100.
Samples overlap_of(const Measured& one);
// Each rank's time is the mean over its rounds; these are the average over ranks, the fastest and the slowest.
struct OverRanks {
  double average = 0, least = 0, most = 0;
};
OverRanks over_ranks(const Samples& us);

// A table for each collective, backend, number of ranks, kind of memory and number of calls in flight;
// "" for no results. `family`: "bandwidth", "latency" or "overlap".
std::string tables(const std::vector<Measured>& all, const std::string& family);
// busbw, latency or overlap over the size, a line for each of the tables and each place, dtype and operation.
Plot plot_of(const std::vector<Measured>& all, const std::string& family);

// --- The rank job of `brigade bench collectives`: all ways of all collectives over all sizes, in turns.

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
