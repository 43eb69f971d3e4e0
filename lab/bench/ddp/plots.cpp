// Turns rows into points.
#include <brigade/lab/bench/ddp/summary.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <string>

namespace brigade::lab::bench {
namespace {

using nlohmann::json;

// Bytes; 0 for a mode other than a cap, and for one bucket of any size.
double cap_of(const json& row) {
  const std::string mode = row.at("mode");
  if (!mode.starts_with("cap")) return 0;
  const double mib = std::stod(mode.substr(3));
  return std::isfinite(mib) ? mib * (1 << 20) : 0;
}

void add_point(Plot& plot, const std::string& series, const PlotPoint& point) {
  auto found = std::ranges::find(plot.series, series, &PlotSeries::name);
  if (found == plot.series.end()) found = plot.series.insert(plot.series.end(), PlotSeries{series, {}});
  found->points.push_back(point);
}

PlotPoint point_of(double x, const json& stat) { return {x, stat.at("median"), stat.at("low"), stat.at("high")}; }

std::string series_of(const json& row) {
  std::string name = row.at("model");
  if (row.at("backend") != "threads" || row.at("link") == "") name += ", " + row.at("backend").get<std::string>();
  return name;
}

void sort_points(Plot& plot) {
  for (PlotSeries& series : plot.series)
    std::ranges::sort(series.points, {}, &PlotPoint::x);
}

std::string over_what(const json& rows) {
  const std::string link = rows.empty() ? "" : rows.front().at("link").get<std::string>();
  return link.empty() ? "" : " over a link of " + link;
}

}  // namespace

Plot step_plot(const json& rows) {
  const bool caps = std::ranges::any_of(rows, [](const json& row) { return cap_of(row) > 0; });
  const bool relative = caps && std::ranges::all_of(rows, [](const json& row) {
                          return cap_of(row) == 0 || row.at("ratios").contains("local");
                        });
  Plot plot;
  if (!caps) {
    plot = {.title = "Step over the number of ranks" + over_what(rows), .x_label = "ranks", .y_label = "step, ms"};
    for (const json& row : rows)
      add_point(plot, series_of(row) + ", " + row.at("mode").get<std::string>(),
                point_of(row.at("ranks"), row.at("step_ms")));
  } else {
    plot = {.title = "Step over the bucket cap" + over_what(rows),
            .x_label = "bucket cap, bytes",
            .y_label = relative ? "step / step without DDP" : "step, ms",
            .x_log = true,
            .x_bytes = true};
    for (const json& row : rows) {
      if (cap_of(row) > 0)
        add_point(plot, series_of(row),
                  point_of(cap_of(row), relative ? row.at("ratios").at("local") : row.at("step_ms")));
    }
  }
  sort_points(plot);
  return plot;
}

Plot overlap_plot(const json& rows) {
  Plot plot{.title = "Communication hidden behind backward" + over_what(rows),
            .x_label = "bucket cap, bytes",
            .y_label = "hidden, percent",
            .x_log = true,
            .x_bytes = true};
  for (const json& row : rows) {
    if (cap_of(row) == 0) continue;
    const double percent = 100 * row.at("overlap").get<double>();
    add_point(plot, series_of(row), {cap_of(row), percent, percent, percent});
  }
  sort_points(plot);
  return plot;
}

}  // namespace brigade::lab::bench
