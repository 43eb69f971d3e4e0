// Adds rows with their ratio to a baseline, and writes the requested files.
#include <brigade/lab/bench/report.h>

#include <brigade/lab/bench/baseline.h>
#include <brigade/lab/bench/joined.h>
#include <brigade/lab/hardware.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>

namespace brigade::lab::bench {

Report::Report() = default;
Report::~Report() = default;

void Report::add_options(Command& command, const std::string& measure, bool plots) {
  measure_ = measure;
  results_.add_options(command);
  command.add_option("--baseline", baseline_file_, "compare with this JSON of an earlier run: median of now / of then");
  if (plots) command.add_option("--plot", plot_file_, "draw the results into this file.svg (needs gnuplot)");
}

void Report::begin() {
  if (!is_speaker()) {
    results_.keep_silent();
    plot_file_.clear();
    return;
  }
  if (!plot_file_.empty()) check_plot(plot_file_);
  if (!baseline_file_.empty()) baseline_ = std::make_unique<Baseline>(baseline_file_, measure_);
  results_.begin();
  if (baseline_) std::cout << baseline_->origin(processor_name()) << "\n";
}

std::string Report::add(const nlohmann::json& key, const nlohmann::json& found) {
  nlohmann::json row = key;
  row.update(found);
  std::string words;
  if (baseline_) {
    const double before = baseline_->median_of(key);
    words = "new";
    if (before > 0) {
      const double ratio = found.at(measure_).at("median").get<double>() / before;
      row["baseline_ratio"] = ratio;
      words = fmt::format("{:.2f}x", ratio);
    }
  }
  results_.add(std::move(row));
  return words;
}

void Report::add_unmeasured(const nlohmann::json& row) { results_.add(row); }

void Report::write(const Plot& plot) {
  results_.write();
  if (!plot_file_.empty()) write_plot(plot_file_, plot);
}

}  // namespace brigade::lab::bench
