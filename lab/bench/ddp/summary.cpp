// Joins the ranks of each round, then the rounds.
#include <brigade/lab/bench/ddp/summary.h>

#include <brigade/lab/json_output.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>

namespace brigade::lab::bench {

namespace {

using nlohmann::json;

constexpr const char* kParts[] = {"compute_ms", "waiting_ms", "reducing_ms", "placing_ms", "hidden_ms"};
constexpr const char* kDenominators[] = {"local", "strict"};

// Of each round, over the ranks.
std::vector<double> over_ranks(const std::vector<json>& ranks, size_t row, const char* what, bool slowest) {
  std::vector<double> values;
  for (size_t round = 0; round < ranks.front().at(row).at("rounds").size(); ++round) {
    double largest = 0;
    double total = 0;
    for (const json& rank : ranks) {
      const double value = rank.at(row).at("rounds").at(round).at(what);
      largest = std::max(largest, value);
      total += value;
    }
    values.push_back(slowest ? largest : total / static_cast<double>(ranks.size()));
  }
  return values;
}

bool peers_known(const std::vector<json>& ranks, size_t row) {
  return std::ranges::all_of(ranks, [row](const json& rank) {
    return std::ranges::all_of(rank.at(row).at("rounds"),
                               [](const json& round) { return round.at("peers_known").get<bool>(); });
  });
}

json ratios_of(const std::vector<json>& ranks, size_t row, const std::vector<double>& steps) {
  json ratios = json::object();
  for (size_t other = 0; other < ranks.front().size(); ++other) {
    const json& given = ranks.front().at(other);
    const bool compared = std::ranges::find(kDenominators, given.at("mode").get<std::string>()) != std::end(kDenominators);
    if (other == row || !compared || given.at("model") != ranks.front().at(row).at("model")) continue;
    std::vector<double> quotients = over_ranks(ranks, other, "step_ms", true);
    for (size_t round = 0; round < quotients.size(); ++round)
      quotients[round] = steps[round] / quotients[round];
    ratios[given.at("mode").get<std::string>()] = statistics(quotients);
  }
  return ratios;
}

}  // namespace

json ddp_rows(const std::vector<json>& ranks) {
  json rows = json::array();
  for (size_t row = 0; row < ranks.front().size(); ++row) {
    const json& first = ranks.front().at(row);
    const std::vector<double> steps = over_ranks(ranks, row, "step_ms", true);
    json made{{"model", first.at("model")},     {"mode", first.at("mode")},       {"bytes", first.at("bytes")},
              {"tensors", first.at("tensors")}, {"buckets", first.at("buckets")}, {"step_ms", statistics(steps)},
              {"ratios", ratios_of(ranks, row, steps)}};
    if (first.at("buckets") != 0) {
      const std::vector<double> sent = over_ranks(ranks, row, "on_the_way_ms", false);
      const std::vector<double> hidden = over_ranks(ranks, row, "hidden_ms", false);
      const double all = std::accumulate(sent.begin(), sent.end(), 0.0);
      made["overlap"] = all > 0 ? std::accumulate(hidden.begin(), hidden.end(), 0.0) / all : 0;
      made["comm_ms"] = statistics(sent);
      for (const char* part : kParts)
        made[part] = statistics(over_ranks(ranks, row, part, false));
      made["peers_known"] = peers_known(ranks, row);
    }
    rows.push_back(std::move(made));
  }
  return rows;
}

}  // namespace brigade::lab::bench
