// The rows of `brigade bench bucket`, as tables, verdicts and a picture.
#pragma once

#include <brigade/lab/bench/bucket/optimum.h>
#include <brigade/lab/bench/bucket/schedule.h>
#include <brigade/lab/bench/on_ranks.h>
#include <brigade/lab/bench/report.h>

#include <nlohmann/json.hpp>

#include <iosfwd>
#include <string>
#include <vector>

namespace brigade::lab::bench {

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
