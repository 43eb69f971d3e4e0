// Plots of results: the gnuplot script, colors for light and dark pages, the resulting SVG.
#include <brigade/lab/bench/plot.h>

#include "program.h"

#include <brigade/core/error.h>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <unistd.h>

namespace brigade::test::bench_plot_test {

using namespace brigade::lab::bench;
using test::contains;

std::string picture(const std::string& ending = ".svg") {
  return (std::filesystem::temp_directory_path() / ("brigade-plot-test-" + std::to_string(getpid()) + ending)).string();
}

std::string content(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
    ++found;
  return found;
}

Plot example() {
  return {.title = "It's <a> \"title\"",
          .x_label = "size",
          .y_label = "busbw, GB/s",
          .x_log = true,
          .x_bytes = true,
          .series = {{"shm", {{4096, 2, 1.5, 2.5}, {1 << 20, 5, 5, 5}, {1 << 24, 4, 3, 6}}},
                     {"gloo", {{0, 1, 1, 1}, {4096, 1, 1, 1}, {1 << 20, NAN, 1, 1}}}}};
}

// WCAG 2.1: relative luminance, and the contrast ratio of two colors.
double luminance(const std::string& colour) {
  const double parts[] = {0.2126, 0.7152, 0.0722};
  double sum = 0;
  for (size_t i = 0; i < 3; ++i) {
    const double c = std::stoi(colour.substr(1 + 2 * i, 2), nullptr, 16) / 255.0;
    sum += parts[i] * (c <= 0.03928 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4));
  }
  return sum;
}

double contrast(const std::string& a, const std::string& b) {
  const double x = luminance(a) + 0.05, y = luminance(b) + 0.05;
  return std::max(x, y) / std::min(x, y);
}

// RAII: hides gnuplot by pointing PATH elsewhere.
struct NoPath {
  std::string kept = std::getenv("PATH");
  NoPath() { setenv("PATH", "/nowhere", 1); }
  ~NoPath() { setenv("PATH", kept.c_str(), 1); }
};

bool has_gnuplot() {
  try {
    check_plot(picture());
    return true;
  } catch (const IoError&) {
    return false;
  }
}

TEST_CASE("gnuplot gets the points that can be drawn, in quotes that end where they should") {
  const std::string script = gnuplot_script(example());
  CHECK(contains(script, "set title 'It''s <a> \"title\"' "));
  CHECK(contains(script, "set logscale x 2\n"));
  CHECK(contains(script, "4096 2 1.5 2.5\n"));
  CHECK(contains(script, "1048576 5 5 5\n"));
  CHECK(
      contains(script, "$series1 << END\n4096 1 1 1\nEND\n"));  // no 0 on a logarithmic axis, nothing that is no number
  CHECK(contains(script, "'4K' 4096"));
  CHECK(contains(script, "'1M' 1048576"));
  CHECK(contains(script, "'16M' 16777216"));
  Plot plain = example();
  plain.x_log = plain.x_bytes = false;
  CHECK(!contains(gnuplot_script(plain), "logscale"));
  CHECK(contains(gnuplot_script(plain), "0 1 1 1\n"));
}

TEST_CASE("what all series have in common stands in the title, once") {
  Plot plot = example();
  plot.series[0].name = "all_reduce, shm, in place";
  plot.series[1].name = "all_reduce, gloo, in place";
  const std::string script = gnuplot_script(plot);
  CHECK(contains(script, "\"title\": all_reduce, in place'"));
  CHECK(contains(script, "title 'shm'"));
  CHECK(contains(script, "title 'gloo'"));
  plot.series.pop_back();
  CHECK(contains(gnuplot_script(plot), "title 'all_reduce, shm, in place'"));
}

TEST_CASE("every colour of a series stands out from a light page and from a dark one") {
  CHECK(series_colours().size() >= 6);
  for (const std::string& colour : series_colours()) {
    CAPTURE(colour);
    CHECK(contrast(colour, "#ffffff") >= 3);
    CHECK(contrast(colour, "#0d1117") >= 3);
  }
}

TEST_CASE("a plot is refused before the work: no SVG, a folder that is not there, no gnuplot") {
  CHECK_THROWS_WITH_AS(check_plot("picture.png"), doctest::Contains("ends in .svg, got 'picture.png'"), ValueError);
  CHECK_THROWS_AS(check_plot("/no-such-folder/picture.svg"), ValueError);
  const NoPath none;
  CHECK_THROWS_WITH_AS(check_plot(picture()), doctest::Contains("apt install gnuplot-nox"), IoError);
}

TEST_CASE(
    "--plot writes an SVG with a line for each series where gnuplot is there, and says what to install elsewhere") {
  const std::string file = picture(".allreduce.svg");
  const test::Streams run = test::run_program_apart(
      "bench allreduce --backends threads --sizes 4K,64K,1M --rounds 3 --memory plain --plot " + file);
  CAPTURE(run.errors);
  if (!has_gnuplot()) {
    CHECK(run.status == 3);
    CHECK(contains(run.errors, "apt install gnuplot-nox"));
    return;
  }
  CHECK(run.status == 0);
  const std::string svg = content(file);
  CHECK(contains(svg, "<svg"));
  CHECK(contains(svg, "</svg>"));
  CHECK(contains(svg, "prefers-color-scheme: dark"));
  CHECK(contains(svg, "Bandwidth of collectives: all_reduce, threads, 2 ranks, plain memory, float32, sum<"));
  CHECK(contains(svg, ">in place<"));
  CHECK(contains(svg, ">out of place<"));
  CHECK(contains(svg, "busbw, GB/s"));
  CHECK(contains(svg, ">64K<"));
  // Three points per series, and its marker in the legend.
  for (const int mark : {4, 5})
    CHECK(count(svg, "xlink:href='#gpPt" + std::to_string(mark - 1) + "' transform=") == 4);
  std::filesystem::remove(file);
}

TEST_CASE("a plot without a point is an error, not an empty picture") {
  Plot empty = example();
  for (PlotSeries& series : empty.series)
    series.points.clear();
  CHECK_THROWS_WITH_AS(write_plot(picture(), empty), doctest::Contains("has no point"), ValueError);
}

}  // namespace brigade::test::bench_plot_test
