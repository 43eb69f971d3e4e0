// Writes the tables and makes the lines of a plot.
#include <brigade/lab/bench/collectives/tables.h>

#include <brigade/lab/bench/collectives/collective.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace brigade::lab::bench {
namespace {

using nlohmann::json;
using Rows = std::vector<const Measured*>;

std::string word(const Measured& one, const char* name) { return one.key->at(name).get<std::string>(); }
int64_t number(const Measured& one, const char* name) { return one.key->at(name).get<int64_t>(); }

// The title of a table.
std::string title_of(const Measured& one) {
  std::string title =
      fmt::format("{}, {}, {} ranks", word(one, "collective"), word(one, "backend"), number(one, "ranks"));
  if (word(one, "memory") == "group") title += ", memory of the group";
  if (word(one, "memory") == "plain") title += ", plain memory";
  if (one.is_plain_loops()) title += ", plain loops";
  if (number(one, "in_flight") > 1) title += fmt::format(", {} calls in flight", number(one, "in_flight"));
  return title;
}

// Groups rows by key, in order of first appearance.
std::vector<std::pair<std::string, Rows>> grouped(const Rows& rows,
                                                  const std::function<std::string(const Measured&)>& by) {
  std::vector<std::pair<std::string, Rows>> groups;
  for (const Measured* one : rows) {
    const std::string key = by(*one);
    const auto found =
        std::find_if(groups.begin(), groups.end(), [&](const auto& group) { return group.first == key; });
    if (found == groups.end()) {
      groups.push_back({key, {one}});
    } else {
      found->second.push_back(one);
    }
  }
  return groups;
}

// Size, dtype and operation: the key of a line in the bandwidth table, which shows in-place and out-of-place
// columns.
std::string line_of(const Measured& one) {
  return fmt::format("{} {} {}", number(one, "bytes"), word(one, "dtype"), word(one, "op"));
}

std::string percent(double noise) { return std::isfinite(noise) ? fmt::format("{:.1f}", noise * 100) : "-"; }

std::string place_columns(const Measured* one, bool baseline) {
  if (!one) return fmt::format("{:>10}{:>8}{:>8}{:>7}{:>7}{}", "-", "-", "-", "-", "-", baseline ? "       -" : "");
  const Spread time = spread_of(one->us);
  return fmt::format("{:>10.2f}{:>8.2f}{:>8.2f}{:>7}{:>7}", time.median, algbw_of(*one), busbw_of(*one), one->wrong,
                     percent(time.noise)) +
         (baseline ? fmt::format("{:>8}", one->beside_baseline) : "");
}

std::string bandwidth_table(const Rows& rows, bool baseline) {
  const std::string names = fmt::format("{:>10}{:>8}{:>8}{:>7}{:>7}", "time", "algbw", "busbw", "#wrong", "noise") +
                            (baseline ? "  before" : "");
  const std::string units =
      fmt::format("{:>10}{:>8}{:>8}{:>7}{:>7}", "(us)", "(GB/s)", "(GB/s)", "", "(%)") + (baseline ? "        " : "");
  std::string text =
      fmt::format("#{:>52}  {:^{}}  {:^{}}\n", "", "out-of-place", names.size(), "in-place", names.size());
  text +=
      fmt::format("#{:>12}{:>14}{:>10}{:>8}{:>6}   {}  {}\n", "size", "count", "type", "redop", "root", names, names);
  text += fmt::format("#{:>12}{:>14}{:>10}{:>8}{:>6}   {}  {}\n", "(B)", "(elements)", "", "", "", units, units);
  for (const auto& [key, both] : grouped(rows, line_of)) {
    const Measured* places[2] = {nullptr, nullptr};
    for (const Measured* one : both)
      places[one->key->at("in_place").get<bool>() ? 1 : 0] = one;
    const Measured& any = *both.front();
    text += fmt::format(" {:>12}{:>14}{:>10}{:>8}{:>6}   {}  {}\n", number(any, "bytes"), number(any, "count"),
                        word(any, "dtype"), word(any, "op"), find_collective(word(any, "collective")).has_root ? 0 : -1,
                        place_columns(places[0], baseline), place_columns(places[1], baseline));
  }
  return text;
}

std::string what(const Measured& one) {
  return fmt::format("{} {}{}", word(one, "dtype"), word(one, "op"),
                     one.key->at("in_place").get<bool>() ? " in place" : " out of place");
}

std::string latency_table(const Rows& rows, bool baseline) {
  std::string text =
      fmt::format("# {:<12}{:>16}{:>16}{:>16}{:>14}{:>8}{:>12}{}  {}\n", "Size", "Avg Latency(us)", "Min Latency(us)",
                  "Max Latency(us)", "Median(us)", "noise%", "Iterations", baseline ? "  before" : "", "what");
  for (const Measured* one : rows) {
    const Spread time = spread_of(one->us);
    const OverRanks ranks = over_ranks(one->us);
    text += fmt::format("  {:<12}{:>16.2f}{:>16.2f}{:>16.2f}{:>14.2f}{:>8}{:>12}{}  {}\n", number(*one, "bytes"),
                        ranks.average, ranks.least, ranks.most, time.median, percent(time.noise),
                        one->us.front().size(), baseline ? fmt::format("{:>8}", one->beside_baseline) : "",
                        word(*one, "collective") == "barrier" ? "" : what(*one));
  }
  return text;
}

std::string overlap_table(const Rows& rows, bool baseline) {
  std::string text = fmt::format("# {:<12}{:>14}{:>14}{:>16}{:>12}{:>8}{}  {}\n", "Size", "Overall(us)", "Compute(us)",
                                 "Pure Comm.(us)", "Overlap(%)", "noise%", baseline ? "  before" : "", "what");
  for (const Measured* one : rows) {
    const Spread overall = spread_of(one->us);
    text += fmt::format("  {:<12}{:>14.2f}{:>14.2f}{:>16.2f}{:>12.1f}{:>8}{}  {}\n", number(*one, "bytes"),
                        overall.median, spread_of(one->compute_us).median, spread_of(one->comm_us).median,
                        spread_of(overlap_of(*one)).median, percent(overall.noise),
                        baseline ? fmt::format("{:>8}", one->beside_baseline) : "", what(*one));
  }
  return text;
}

PlotPoint point_of(const Measured& one, const std::string& family) {
  const auto bytes = static_cast<double>(number(one, "bytes"));
  const Spread time = spread_of(one.us);
  if (family == "overlap") {
    const Spread hidden = spread_of(overlap_of(one));
    return {bytes, hidden.median, hidden.low, hidden.high};
  }
  if (family == "latency") return {bytes, time.median, time.low, time.high};
  // A bandwidth is high where a time is low.
  const double busbw = busbw_of(one);
  return {bytes, busbw, busbw * time.median / time.high, busbw * time.median / time.low};
}

}  // namespace

bool Measured::is_plain_loops() const { return key->value("plain_loops", false); }

double algbw_of(const Measured& one) { return algorithm_bandwidth(number(one, "bytes"), spread_of(one.us).median); }

double busbw_of(const Measured& one) {
  return algbw_of(one) * find_collective(word(one, "collective")).bus_factor(static_cast<double>(number(one, "ranks")));
}

Samples overlap_of(const Measured& one) {
  Samples all(one.us.size());
  for (size_t rank = 0; rank < all.size(); ++rank) {
    for (size_t round = 0; round < one.us[rank].size(); ++round) {
      const double seen = (one.us[rank][round] - one.compute_us[rank][round]) / one.comm_us[rank][round];
      all[rank].push_back(std::clamp(100 * (1 - seen), 0.0, 100.0));
    }
  }
  return all;
}

OverRanks over_ranks(const Samples& us) {
  std::vector<double> means;
  for (const std::vector<double>& rank : us)
    means.push_back(std::accumulate(rank.begin(), rank.end(), 0.0) /
                    static_cast<double>(std::max<size_t>(rank.size(), 1)));
  if (means.empty()) return {};
  return {std::accumulate(means.begin(), means.end(), 0.0) / static_cast<double>(means.size()),
          *std::min_element(means.begin(), means.end()), *std::max_element(means.begin(), means.end())};
}

std::string tables(const std::vector<Measured>& all, const std::string& family) {
  Rows rows;
  bool baseline = false;
  for (const Measured& one : all) {
    rows.push_back(&one);
    baseline = baseline || !one.beside_baseline.empty();
  }
  std::string text;
  for (const auto& [title, of_table] : grouped(rows, title_of)) {
    text += (text.empty() ? "# " : "\n# ") + title + "\n";
    text += family == "latency"   ? latency_table(of_table, baseline)
            : family == "overlap" ? overlap_table(of_table, baseline)
                                  : bandwidth_table(of_table, baseline);
  }
  return text;
}

Plot plot_of(const std::vector<Measured>& all, const std::string& family) {
  Plot plot{.title = family == "latency"   ? "Latency of collectives"
                     : family == "overlap" ? "Hidden communication of collectives"
                                           : "Bandwidth of collectives",
            .x_label = "size in bytes",
            .y_label = family == "latency"   ? "time of a call, us"
                       : family == "overlap" ? "hidden, % of the communication"
                                             : "busbw, GB/s",
            .x_log = true,
            .y_log = family == "latency",
            .x_bytes = true,
            .series = {}};
  Rows rows;
  for (const Measured& one : all) {
    if (number(one, "bytes") > 0) rows.push_back(&one);
  }
  for (const auto& [name, line] : grouped(rows, [](const Measured& one) {
         return title_of(one) + ", " + word(one, "dtype") + ", " + word(one, "op") +
                (one.key->at("in_place").get<bool>() ? ", in place" : ", out of place");
       })) {
    PlotSeries series{name, {}};
    for (const Measured* one : line)
      series.points.push_back(point_of(*one, family));
    plot.series.push_back(std::move(series));
  }
  return plot;
}

}  // namespace brigade::lab::bench
