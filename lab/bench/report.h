// The output of a benchmark, compared with the results of an earlier run.
#pragma once

#include <brigade/lab/bench/plot.h>
#include <brigade/lab/results.h>

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <string>

namespace brigade::lab::bench {

// --- The results of an earlier run, to compare with.

class Baseline {
 public:
  // Reads a file written by --json. `measure` names the field of a row (a STAT) to compare. Throws IoError when the
  // file cannot be read, ValueError when no row in it has the measure.
  Baseline(std::string file, std::string measure);
  ~Baseline();
  Baseline(const Baseline&) = delete;
  Baseline& operator=(const Baseline&) = delete;

  // The median of the row whose fields match all fields of `key`; 0 when no row matches.
  double median_of(const nlohmann::json& key) const;
  // "baseline FILE: Brigade 0.1.0 (commit), PROCESSOR", plus a warning when that processor is not `processor`.
  std::string origin(const std::string& processor) const;

 private:
  std::string file_, measure_;
  std::unique_ptr<nlohmann::json> all_;
};

// --- The output of a benchmark: rows as JSON and CSV, compared with an earlier run's rows, and as a plot.

class Baseline;

// --json, --csv, --baseline and --plot. Used like Results: add options when the command is made, call begin()
// before the work and write() after it.
class Report {
 public:
  Report();
  ~Report();

  // `measure` names the field of a row (a STAT) whose medians --baseline compares ("time_us"). Without `plots`
  // there is no --plot.
  void add_options(Command& command, const std::string& measure, bool plots);
  // Throws ValueError for files that cannot be written and for a baseline that is not a benchmark's result, IoError
  // for one that cannot be read and when gnuplot is missing. Prints the origin of the baseline, with a warning when
  // its processor is another one. On a rank of a launcher's job other than rank 0 (on_ranks.h), this object reads,
  // writes and prints nothing.
  void begin();
  // Adds the row of `key` (words and numbers that name what was measured) and `found` (the results), and
  // "baseline_ratio" when the baseline has a row with this key: this run's median divided by the baseline's.
  // Returns the ratio as text: "0.97x", "new" when the baseline has no such row, "" without a baseline.
  std::string add(const nlohmann::json& key, const nlohmann::json& found);
  // Adds a row without a measure.
  void add_unmeasured(const nlohmann::json& row);
  bool has_baseline() const noexcept { return baseline_ != nullptr; }
  bool wants_plot() const noexcept { return !plot_file_.empty(); }
  // Writes the files; `plot` only when --plot was given. Throws IoError, and ValueError for a plot without a point.
  void write(const Plot& plot = {});

 private:
  Results results_;
  std::string measure_, baseline_file_, plot_file_;
  std::unique_ptr<Baseline> baseline_;
};

}  // namespace brigade::lab::bench
