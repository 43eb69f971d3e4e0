// Pictures of results: lines over an axis, as SVG, drawn by gnuplot.
#pragma once

#include <string>
#include <vector>

namespace brigade::lab::bench {

struct PlotPoint {
  double x = 0, y = 0;
  double low = 0, high = 0;  // the quartiles, drawn as a bar; equal to y: none
};

struct PlotSeries {
  std::string name;  // in the legend
  std::vector<PlotPoint> points;
};

// bandwidth over size, step over cap, overlap over cap, time over ranks: all are one of these.
struct Plot {
  std::string title, x_label, y_label;
  bool x_log = false, y_log = false;  // points at 0 or below are left out on such an axis
  bool x_bytes = false;               // ticks as 4K, 1M
  std::vector<PlotSeries> series;
};

// Before the work: throws ValueError when `path` does not end in .svg or cannot be written, IoError
// that names the package when gnuplot is missing.
void check_plot(const std::string& path);
// Readable on light and dark pages: no background, ink that follows the page's colour scheme, series
// in colours that stand out from both and with marks of their own. Throws ValueError for a plot
// without a point, IoError when gnuplot fails (with what it says).
void write_plot(const std::string& path, const Plot& plot);

// "#rrggbb", in the order of the series.
const std::vector<std::string>& series_colours();
// What gnuplot is given.
std::string gnuplot_script(const Plot& plot);

}  // namespace brigade::lab::bench
