// Makes rows from samples and prints them.
#include <brigade/lab/bench/bucket/tables.h>

#include <brigade/lab/bench/benchmark.h>
#include <brigade/lab/bench/spread.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ostream>

namespace brigade::lab::bench {
namespace {

using nlohmann::json;

constexpr const char* kTerms[] = {"flatten", "numbers", "flags", "launch", "reduce", "copy_out"};

double median_of(const json& stat) { return stat.at("median"); }

// The name of a line: what its rows share over all sizes.
std::string line_of(const BucketRow& row) {
  const json& key = row.key;
  const auto parameters = key.at("parameters").get<int64_t>();
  std::string text = fmt::format("{}, {} {}, {}", key.at("backend").get<std::string>(), parameters,
                                 parameters == 1 ? "parameter" : "parameters", key.at("gradients").get<std::string>());
  if (key.at("dtype") != "float32") text += ", " + key.at("dtype").get<std::string>();
  if (key.at("hook") != "none") text += ", hook " + key.at("hook").get<std::string>();
  return text;
}

BucketCost cost_of(const BucketRow& row) {
  BucketCost cost{.bytes = row.key.at("bytes"), .terms_us = {}};
  for (const char* term : kTerms)
    cost.terms_us.emplace_back(term, row.found.at("terms_us").at(term).at("low"));
  return cost;
}

}  // namespace

std::vector<BucketRow> bucket_rows(const RanksRun& run, int ranks) {
  std::vector<BucketRow> rows;
  for (size_t i = 0; i < run.rank(0).size(); ++i) {
    const json& first = run.rank(0).at(i);
    BucketRow row{{{"what", "terms"}, {"ranks", ranks}}, {}};
    for (const char* name : {"backend", "bytes", "parameters", "dtype", "hook", "gradients"})
      row.key[name] = first.at(name);
    for (const char* name : {"payload_bytes", "rounds", "noise"})
      row.found[name] = first.at(name);
    row.found["time_us"] = to_json(spread_of(run.samples(i, "together")));
    row.found["sum_us"] = to_json(spread_of(run.samples(i, "sum")));
    for (const char* term : kTerms)
      row.found["terms_us"][term] = to_json(spread_of(run.samples(i, term)));
    json& inside = row.found["in_backward_us"];
    inside["rest"] = to_json(spread_of(run.samples(i, "rest_in_backward")));
    inside["reduce"] = nullptr;
    if (!first.at("reduce_in_backward").empty())
      inside["reduce"] = to_json(spread_of(run.samples(i, "reduce_in_backward")));
    rows.push_back(std::move(row));
  }
  return rows;
}

void print_terms(std::vector<BucketRow> rows, Report& report, std::ostream& out) {
  // The rows were measured size by size; each table holds one line over all sizes.
  std::ranges::stable_sort(rows, {}, [](const BucketRow& row) { return line_of(row); });
  std::string line;
  for (const BucketRow& row : rows) {
    if (line_of(row) != line) {
      line = line_of(row);
      out << fmt::format("\n{}; {} ranks; medians, microseconds\n", line, row.key.at("ranks").get<int>());
      out << fmt::format("{:>10} {:>9} {:>9} {:>9} {:>9} {:>10} {:>9} {:>10} {:>10} {:>8} {:>7} {:>7}\n", "size",
                         "flatten", "numbers", "flags", "launch", "reduce", "copy-out", "sum", "together", "us/MiB",
                         "GB/s", "rounds");
    }
    const auto bytes = row.key.at("bytes").get<double>();
    const double together = median_of(row.found.at("time_us"));
    const double sum = median_of(row.found.at("sum_us"));
    std::string terms;
    for (const char* term : kTerms)
      terms += fmt::format(" {:>{}.2f}", median_of(row.found.at("terms_us").at(term)),
                           std::string(term) == "reduce" ? 10 : 9);
    out << fmt::format("{:>10}{} {:>10.2f} {:>10.2f} {:>8.1f} {:>7.2f} {:>7} {}\n",
                       byte_size_in_words(row.key.at("bytes")), terms, sum, together, sum * kMebibyte / bytes,
                       bytes / sum / 1e3, row.found.at("rounds").get<int>(), report.add(row.key, row.found));
  }
}

void print_optima(const std::vector<BucketRow>& rows, std::ostream& out) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<BucketCost>> lines;
  for (const BucketRow& row : rows) {
    if (!lines.contains(line_of(row))) order.push_back(line_of(row));
    lines[line_of(row)].push_back(cost_of(row));
  }
  out << "\nWhich bucket costs least a byte (sum of the terms; lower quartiles, which other work on the machine moves least):\n";
  for (const std::string& line : order) {
    std::vector<BucketCost>& costs = lines[line];
    if (costs.size() < 2) continue;
    std::ranges::sort(costs, {}, &BucketCost::bytes);
    out << fmt::format("  {}: {}\n", line, in_words(find_optimum(costs)));
  }
}

Plot terms_plot(const std::vector<BucketRow>& rows) {
  Plot plot{.title = "What DDP adds to a backward for one bucket",
            .x_label = "bucket, bytes",
            .y_label = "us per MiB",
            .x_log = true,
            .y_log = true,
            .x_bytes = true};
  for (const BucketRow& row : rows) {
    const std::string line = line_of(row);
    auto series = std::ranges::find(plot.series, line, &PlotSeries::name);
    if (series == plot.series.end()) series = plot.series.insert(plot.series.end(), PlotSeries{line, {}});
    const auto bytes = row.key.at("bytes").get<double>();
    const auto per_mib = [&](const char* what) {
      return row.found.at("sum_us").at(what).get<double>() * kMebibyte / bytes;
    };
    series->points.push_back({bytes, per_mib("median"), per_mib("low"), per_mib("high")});
  }
  return plot;
}

std::vector<OverlapRow> overlap_rows(const RanksRun& run, double compute_ms, const LinkSpeed& link) {
  std::vector<OverlapRow> rows;
  for (size_t i = 0; i < run.rank(0).size(); ++i) {
    const json& first = run.rank(0).at(i);
    const auto bytes = first.at("bucket_bytes").get<std::vector<int64_t>>();
    Samples backward = run.samples(i, "backward_ms");
    for (std::vector<double>& rank : backward) {
      for (double& value : rank)
        value *= 1e3;
    }
    const double sent = total(run.samples(i, "on_the_way_ms"));
    rows.push_back({.cap = first.at("cap"),
                    .buckets = bytes.size(),
                    .time_us = to_json(spread_of(backward)),
                    .overlap = sent > 0 ? total(run.samples(i, "hidden_ms")) / sent : 0,
                    .best = best_backward(bytes, compute_ms, link),
                    .rounds = first.at("rounds")});
  }
  return rows;
}

void print_overlap(const std::vector<OverlapRow>& rows, const json& key, Report& report, std::ostream& out) {
  out << fmt::format("{:>10} {:>8} {:>12} {:>9} {:>9} {:>9} {:>9} {:>7}  {}\n", "cap", "buckets", "backward ms", "min",
                     "best ms", "hidden", "best", "rounds", "the best is decided by");
  for (const OverlapRow& row : rows) {
    json named = key;
    named["cap"] = row.cap;
    const json found{{"buckets", row.buckets},
                     {"time_us", row.time_us},
                     {"overlap", row.overlap},
                     {"best_us", row.best.ms * 1e3},
                     {"best_overlap", row.best.hidden_share},
                     {"decides", row.best.decides},
                     {"rounds", row.rounds}};
    out << fmt::format("{:>10} {:>8} {:>12.2f} {:>9.2f} {:>9.2f} {:>7.1f} % {:>7.1f} % {:>7}  {} {}\n",
                       byte_size_in_words(row.cap), row.buckets, median_of(row.time_us) / 1e3,
                       row.time_us.at("min").get<double>() / 1e3, row.best.ms, 100 * row.overlap,
                       100 * row.best.hidden_share, row.rounds, row.best.decides, report.add(named, found));
  }
  out << best_cap_in_words(rows) << "\n";
}

std::string best_cap_in_words(const std::vector<OverlapRow>& rows) {
  const auto time = [](const OverlapRow& row) { return median_of(row.time_us); };
  const auto best = std::ranges::min_element(rows, {}, time);
  auto from = best;
  auto to = best;
  while (from != rows.begin() && time(*(from - 1)) <= 1.03 * time(*best))
    --from;
  while (to + 1 != rows.end() && time(*(to + 1)) <= 1.03 * time(*best))
    ++to;
  std::string text = "the shortest backward has buckets of " + byte_size_in_words(best->cap);
  if (from != to)
    text += fmt::format(" ({} to {} within 3 %)", byte_size_in_words(from->cap), byte_size_in_words(to->cap));
  if (from != rows.begin()) text += "; smaller ones pay " + rows.front().best.decides;
  if (to + 1 != rows.end())
    text +=
        fmt::format("{} {}", from != rows.begin() ? ", larger ones" : "; larger ones pay", rows.back().best.decides);
  return text;
}

}  // namespace brigade::lab::bench
