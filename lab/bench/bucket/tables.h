// The results of `brigade bench bucket`: a lower bound for any reducer, and the rows.
#pragma once

#include <brigade/lab/bench/bucket/optimum.h>
#include <brigade/lab/bench/on_ranks.h>
#include <brigade/lab/bench/report.h>
#include <brigade/lab/bench/simulated_link.h>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

namespace brigade::lab::bench {

// --- A lower bound for any reducer: the time until the buckets of a backward of known duration have passed a link of
// known speed, and what limits it.

struct BestBackward {
  double ms = 0;            // until the last bucket has passed the link
  double hidden_share = 0;  // of the time that the link is busy
  // What limits it, and what would be faster:
  //   "last bucket"  the link is idle when the last bucket is full: smaller buckets
  //   "latency"      the link is busy then, mostly with latency: larger buckets
  //   "bandwidth"    the link is busy then, mostly with bytes: a faster link, or fewer bytes
  std::string decides;
};

// Gradients become ready evenly over `compute_ms`; buckets of these sizes fill in this order, and each is sent as
// soon as it is full.
BestBackward best_backward(std::span<const int64_t> bucket_bytes, double compute_ms, const LinkSpeed& link);

// --- The rows of `brigade bench bucket`, as tables, verdicts and a picture.

// One case of kBucketTermsJob.
struct BucketRow {
  nlohmann::json key;    // {"what": "terms", "backend", "ranks", "bytes", "parameters", "dtype", "hook", "gradients"}
  nlohmann::json found;  // {"payload_bytes", "time_us" (together): STAT, "sum_us": STAT, "terms_us": {term: STAT},
                         // "in_backward_us": {"reduce": STAT or null, "rest": STAT}, "rounds", "noise"}
};
std::vector<BucketRow> bucket_rows(const RanksRun& run, int ranks);

void print_terms(std::vector<BucketRow> rows, Report& report, std::ostream& out);
// Prints a line for each backend, dtype, hook, way and number of parameters that was measured at more than one
// size: which size costs least per byte, and which terms the other sizes pay (optimum.h).
void print_optima(const std::vector<BucketRow>& rows, std::ostream& out);
// The sum of the terms per byte, in us per MiB, over the size.
Plot terms_plot(const std::vector<BucketRow>& rows);

// One cap of kBucketOverlapJob.
struct OverlapRow {
  int64_t cap = 0;
  size_t buckets = 0;
  nlohmann::json time_us;  // STAT of the backward
  double overlap = 0;      // measured, over all rounds
  BestBackward best;
  int rounds = 0;
};
std::vector<OverlapRow> overlap_rows(const RanksRun& run, double compute_ms, const LinkSpeed& link);
// `key`: the fields that all rows share. The last line names the cap with the shortest backward and what other caps
// pay.
void print_overlap(const std::vector<OverlapRow>& rows, const nlohmann::json& key, Report& report, std::ostream& out);
// "the shortest backward has buckets of 1 MiB (256 KiB to 4 MiB within 3 %); smaller ones pay
// latency, larger ones the last bucket"
std::string best_cap_in_words(const std::vector<OverlapRow>& rows);

}  // namespace brigade::lab::bench
