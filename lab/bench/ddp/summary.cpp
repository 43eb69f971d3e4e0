// Combines the ranks of each round, then the rounds.
#include <brigade/lab/bench/ddp/summary.h>

#include <brigade/lab/bench/spread.h>

#include <nlohmann/json.hpp>

#include <algorithm>

namespace brigade::lab::bench {
namespace {

using nlohmann::json;

constexpr const char* kParts[] = {"compute_ms", "reducing_ms", "placing_ms", "hidden_ms"};

// The slowest rank's time in each round.
Samples of_slowest(const Samples& steps) {
  std::vector<double> slowest = steps.front();
  for (const std::vector<double>& rank : steps) {
    for (size_t round = 0; round < slowest.size(); ++round)
      slowest[round] = std::max(slowest[round], rank.at(round));
  }
  return {slowest};
}

json ratios_of(const RanksRun& run, size_t row, const Samples& steps) {
  const json& rows = run.rank(0);
  json found = json::object();
  for (size_t other = 0; other < rows.size(); ++other) {
    const std::string mode = rows.at(other).at("mode");
    const bool comparable = rows.at(other).at("model") == rows.at(row).at("model") &&
                            rows.at(other).at("backend") == rows.at(row).at("backend");
    if (other == row || !comparable || (mode != "local" && mode != "strict")) continue;
    found[mode] = to_json(spread_of(ratios(steps, of_slowest(run.samples(other, "step_ms")))));
  }
  return found;
}

}  // namespace

json ddp_rows(const RanksRun& run) {
  json made = json::array();
  for (size_t row = 0; row < run.rank(0).size(); ++row) {
    const json& first = run.rank(0).at(row);
    const Samples steps = of_slowest(run.samples(row, "step_ms"));
    json each{{"step_ms", to_json(spread_of(steps))}, {"ratios", ratios_of(run, row, steps)}};
    for (const char* same : {"model", "backend", "mode", "bytes", "tensors", "buckets", "rounds", "noise"})
      each[same] = first.at(same);
    if (first.at("buckets") != 0) {
      const Samples sent = run.samples(row, "on_the_way_ms");
      const double all = total(sent);
      each["overlap"] = all > 0 ? total(run.samples(row, "hidden_ms")) / all : 0;
      each["comm_ms"] = to_json(spread_of(sent));
      each["peers_known"] = first.at("peers_known");
      for (const char* part : kParts)
        each[part] = to_json(spread_of(run.samples(row, part)));
      if (first.at("peers_known")) each["waiting_ms"] = to_json(spread_of(run.samples(row, "waiting_ms")));
    }
    made.push_back(std::move(each));
  }
  return made;
}

}  // namespace brigade::lab::bench
