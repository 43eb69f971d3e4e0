// What a benchmark leaves: rows as JSON and CSV, beside the rows of an earlier run, and as a picture.
#pragma once

#include <brigade/lab/bench/plot.h>
#include <brigade/lab/results.h>

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <string>

namespace brigade::lab::bench {

class Baseline;

// --json, --csv, --baseline and --plot. As Results: options when the command is made, begin() before
// the work, write() after it.
class Report {
 public:
  Report();
  ~Report();

  // `measure`: the field of a row, a STAT, whose medians --baseline compares ("time_us"). Without
  // `plots` there is no --plot.
  void add_options(Command& command, const std::string& measure, bool plots);
  // Throws ValueError for files that cannot be written and a baseline that is no result of a
  // benchmark, IoError for one that cannot be read and where gnuplot is missing. Says on standard
  // output where the baseline is from, and where its processor is another one. On a rank of a
  // launcher's job that is not rank 0 (joined.h), nothing is read, written or printed from here on.
  void begin();
  // Adds the row of `key` (what was measured: words and numbers that name it) and `found` (what came
  // out), and "baseline_ratio" where the baseline has a row of this key: the median of now by that of
  // then. Returns it in words: "0.97x", "new" where the baseline has no such row, "" without one.
  std::string add(const nlohmann::json& key, const nlohmann::json& found);
  // A row without a measure.
  void add_unmeasured(const nlohmann::json& row);
  bool has_baseline() const noexcept { return baseline_ != nullptr; }
  bool wants_plot() const noexcept { return !plot_file_.empty(); }
  // Writes the files; `plot` where --plot was given. Throws IoError, and ValueError for a plot without
  // a point.
  void write(const Plot& plot = {});

 private:
  Results results_;
  std::string measure_, baseline_file_, plot_file_;
  std::unique_ptr<Baseline> baseline_;
};

}  // namespace brigade::lab::bench
