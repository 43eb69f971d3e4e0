// Finds rows of an earlier JSON file by key, adds rows with their ratio to it, and writes the requested files.
#include <brigade/lab/bench/report.h>

#include <brigade/core/error.h>
#include <brigade/lab/bench/on_ranks.h>
#include <brigade/lab/hardware.h>
#include <brigade/lab/json.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>

namespace brigade::lab::bench {

// --- Reads an earlier JSON file and finds its rows by key.

namespace {

using nlohmann::json;

bool has_measure(const json& row, const std::string& measure) {
  const json* const stat = row.is_object() && row.contains(measure) ? &row.at(measure) : nullptr;
  return stat && stat->is_object() && stat->contains("median") && stat->at("median").is_number();
}

std::string word(const json& object, const char* name) {
  return object.is_object() && object.contains(name) && object.at(name).is_string() ? object.at(name).get<std::string>()
                                                                                    : "unknown";
}

}  // namespace

Baseline::Baseline(std::string file, std::string measure) : file_(std::move(file)), measure_(std::move(measure)) {
  all_ = std::make_unique<json>(read_json("--baseline", file_));
  if (all_->is_object() && all_->contains("results") && all_->at("results").is_array()) {
    for (const json& row : all_->at("results")) {
      if (has_measure(row, measure_)) return;
    }
  }
  throw ValueError(
      "--baseline: expected a file that `brigade bench ... --json FILE` has written, with rows that have "
      "\"{}\"; {} has none",
      measure_, file_);
}

Baseline::~Baseline() = default;

double Baseline::median_of(const json& key) const {
  for (const json& row : all_->at("results")) {
    if (!has_measure(row, measure_)) continue;
    bool same = true;
    for (const auto& [name, value] : key.items())
      same = same && row.contains(name) && row.at(name) == value;
    if (same) return row.at(measure_).at("median");
  }
  return 0;
}

std::string Baseline::origin(const std::string& processor) const {
  const std::string theirs = all_->contains("machine") ? word(all_->at("machine"), "cpu") : "unknown";
  const std::string mine = processor.empty() ? "unknown" : processor;
  const std::string from =
      fmt::format("baseline {}: Brigade {} ({}), {}", file_, word(*all_, "version"), word(*all_, "commit"), theirs);
  if (theirs == mine && mine != "unknown") return from;
  return from + fmt::format(
                    "\nWARNING: the baseline is from another processor than this one ({}): the ratios compare "
                    "processors as well",
                    mine);
}

// --- Adds rows with their ratio to a baseline, and writes the requested files.

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
