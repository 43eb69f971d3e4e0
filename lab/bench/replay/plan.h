// What a trace says that has to be done again: when each rank launched which bucket, and what it
// computed in between.
#pragma once

#include <brigade/core/dtype.h>
#include <brigade/dist/reducer/bucket.h>
#include <brigade/lab/bench/round_shares.h>
#include <brigade/lab/trace_file.h>

#include <nlohmann/json_fwd.hpp>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace brigade::lab::bench {

// Nanoseconds, rounded.
inline int64_t ns_of_us(double us) { return std::llround(us * 1e3); }

struct ReplayBucket {
  double at_us = 0;   // launched
  int64_t bytes = 0;  // of its payload
  DType dtype = DType::Float32;
};

// One step of one rank, from the begin of its forward to final gradients. Times are microseconds
// from that begin.
struct ReplayStep {
  double late_us = 0;  // its begin, after that of the first rank
  std::vector<ReplayBucket> buckets;
  std::vector<double> ready_us;  // of each parameter's gradient; -1: it did not come
  double compute_us = 0;         // all nodes had run
  double rest_us = 0;            // from the last bucket to the end
  double recorded_us = 0;        // the end
  RoundShares recorded;          // with the forward in compute_ms
};

struct ReplayPlan {
  std::string module, backend;
  std::vector<std::vector<ReplayStep>> ranks;  // the same steps of each
  // What a re-cut needs to know.
  std::vector<dist::ParameterInfo> parameters;
  std::vector<uint32_t> order;  // in which gradients became ready on rank 0, then those that did not
};

// Throws ValueError for a trace of which no step is there on every rank, and for collectives that ran
// on a device (the moments of the host say little of them); nlohmann's error where it lacks something.
ReplayPlan plan_of(const Trace& trace);

// The same gradients in buckets of `cap_bytes`, cut by the reducer's own assign_buckets. A bucket is
// launched when its last gradient is ready and the one before was launched.
ReplayPlan recut(const ReplayPlan& plan, int64_t cap_bytes);

// For a job: what a rank has to do.
nlohmann::json to_json(const std::vector<ReplayStep>& steps);
std::vector<ReplayStep> steps_from(const nlohmann::json& json);

}  // namespace brigade::lab::bench
