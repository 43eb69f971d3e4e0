// Results of `brigade bench collectives` as people know them: the columns of nccl-tests, and those of the
// OSU micro-benchmarks.
#pragma once

#include <brigade/lab/bench/plot.h>
#include <brigade/lab/bench/spread.h>

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <string>
#include <vector>

namespace brigade::lab::bench {

// A way at a size, of all ranks.
struct Measured {
  std::shared_ptr<const nlohmann::json> key;  // job.h
  Samples us;
  int64_t wrong = 0;
  Samples compute_us = {}, comm_us = {};  // of overlap
  std::string beside_baseline = "";       // "0.97x"

  bool is_plain_loops() const;
};

// GB/s of the median time.
double algbw_of(const Measured& one);
double busbw_of(const Measured& one);

// What is hidden of the communication, in percent, round by round, as OSU defines it: 100 * (1 - (overall
// - compute) / communication), not below 0 nor above 100.
Samples overlap_of(const Measured& one);
// The time of a rank, on average over its rounds: the average over ranks, the fastest and the slowest.
struct OverRanks {
  double average = 0, least = 0, most = 0;
};
OverRanks over_ranks(const Samples& us);

// A table for each collective, backend, number of ranks, kind of memory and number of calls in flight;
// "" for no results. `family`: "bandwidth", "latency" or "overlap".
std::string tables(const std::vector<Measured>& all, const std::string& family);
// busbw, latency or overlap over the size, a line for each of the tables and each place, dtype and operation.
Plot plot_of(const std::vector<Measured>& all, const std::string& family);

}  // namespace brigade::lab::bench
