// Reads an earlier JSON file and finds its rows by key.
#include <brigade/lab/bench/baseline.h>

#include <brigade/core/error.h>
#include <brigade/lab/json_input.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace brigade::lab::bench {

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

}  // namespace brigade::lab::bench
