// Plots of results: lines over an axis, as SVG, drawn by gnuplot.
#pragma once

#include <string>
#include <vector>

namespace brigade::lab::bench {

struct PlotPoint {
  double x = 0, y = 0;
  double low = 0, high = 0;  // the quartiles, drawn as a bar; no bar when equal to y
};

struct PlotSeries {
  std::string name;  // in the legend
  std::vector<PlotPoint> points;
};

// A plot, such as bandwidth over size, step over cap, overlap over cap or time over ranks.
struct Plot {
  std::string title, x_label, y_label;
  bool x_log = false, y_log = false;  // points at 0 or below are left out on such an axis
  bool x_bytes = false;               // ticks as 4K, 1M
  std::vector<PlotSeries> series;
};

// Call it before the work. Throws ValueError when `path` does not end in .svg or cannot be written, IoError that
// names the package when gnuplot is missing.
void check_plot(const std::string& path);
// Writes a plot that is readable on light and dark pages: no background, text and axes that follow the page's color
// scheme, series with colors visible on both and with distinct marks. Throws ValueError for a plot without a point,
// IoError with gnuplot's output when gnuplot fails.
void write_plot(const std::string& path, const Plot& plot);

// "#rrggbb", in the order of the series.
const std::vector<std::string>& series_colours();
// The input of gnuplot.
std::string gnuplot_script(const Plot& plot);

}  // namespace brigade::lab::bench
