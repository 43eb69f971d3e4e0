// The replay plan that is read from a trace: when each rank launched each bucket, and what it computed in between.
#pragma once

#include <brigade/core/dtype.h>
#include <brigade/dist/buckets/bucket.h>
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
  double at_us = 0;   // when it was launched
  int64_t bytes = 0;  // of the payload
  DType dtype = DType::Float32;
};

// One step of one rank, from the start of its forward to final gradients. Times are microseconds from that start.
struct ReplayStep {
  double late_us = 0;  // start of this rank's step after that of the first rank
  std::vector<ReplayBucket> buckets;
  std::vector<double> ready_us;  // for each parameter's gradient; -1: it never became ready
  double compute_us = 0;         // when all nodes had run
  double rest_us = 0;            // from the last bucket to the end
  double recorded_us = 0;        // when the step ended
  RoundShares recorded;          // compute_ms includes the forward
};

struct ReplayPlan {
  std::string module, backend;
  std::vector<std::vector<ReplayStep>> ranks;  // the same steps on each rank
  // The inputs of recut().
  std::vector<dist::ParameterInfo> parameters;
  std::vector<uint32_t> order;  // in which gradients became ready on rank 0, then those that never did
};

// Throws ValueError when no step of the trace is complete on every rank, and for collectives that ran on a device
// (host timestamps say little about them); nlohmann's error when a field is missing.
ReplayPlan plan_of(const Trace& trace);

// Places the same gradients into buckets of `cap_bytes`, cut by the reducer's own assign_buckets. A bucket is
// launched when its last gradient is ready and the previous bucket has been launched.
ReplayPlan recut(const ReplayPlan& plan, int64_t cap_bytes);

// The steps of a rank, serialized for the job.
nlohmann::json to_json(const std::vector<ReplayStep>& steps);
std::vector<ReplayStep> steps_from(const nlohmann::json& json);

}  // namespace brigade::lab::bench
