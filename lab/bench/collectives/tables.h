// The results of `brigade bench collectives` in familiar form: the columns of nccl-tests and of the OSU
// micro-benchmarks.
#pragma once

#include <brigade/lab/bench/plot.h>
#include <brigade/lab/bench/spread.h>

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <string>
#include <vector>

namespace brigade::lab::bench {

// One way at one size, on all ranks.
struct Measured {
  std::shared_ptr<const nlohmann::json> key;  // job.h
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

}  // namespace brigade::lab::bench
