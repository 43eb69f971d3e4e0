// Writes a script for gnuplot, runs gnuplot, and adds styles for light and dark pages to its SVG.
#include <brigade/lab/bench/plot.h>

#include <brigade/core/atomic_file.h>
#include <brigade/core/error.h>
#include <brigade/lab/json.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include <sys/wait.h>
#include <unistd.h>

namespace brigade::lab::bench {
namespace {

// Middle gray: readable on both kinds of page in a viewer without color schemes.
constexpr const char* kInk = "#777777";
constexpr const char* kStyle = R"(<style>
@media (prefers-color-scheme: light) { [stroke^="rgb(119"] { stroke: #24292f } [fill^="rgb(119"] { fill: #24292f } }
@media (prefers-color-scheme: dark) { [stroke^="rgb(119"] { stroke: #d0d7de } [fill^="rgb(119"] { fill: #d0d7de } }
</style>
)";

// In single quotes gnuplot takes every character literally, except a quote, which must be doubled.
std::string in_quotes(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20) continue;
    if (c == '\'') out += '\'';
    out += c;
  }
  return out + "'";
}

bool shown(const Plot& plot, const PlotPoint& point) {
  return std::isfinite(point.x) && std::isfinite(point.y) && (!plot.x_log || point.x > 0) &&
         (!plot.y_log || point.y > 0);
}

// The ticks of a size axis, 4, 64, 1K, ... (each power of 2 that fits, thinned to a dozen), and a range with room
// for the first and the last.
std::string byte_axis(const Plot& plot) {
  double least = INFINITY, most = 0;
  for (const PlotSeries& series : plot.series) {
    for (const PlotPoint& point : series.points) {
      if (!shown(plot, point)) continue;
      least = std::min(least, point.x);
      most = std::max(most, point.x);
    }
  }
  const int first = static_cast<int>(std::floor(std::log2(std::max(least, 1.0))));
  const int last = static_cast<int>(std::ceil(std::log2(std::max(most, 1.0))));
  const int step = std::max(1, (last - first + 11) / 12);
  std::string ticks;
  for (int power = first; power <= last; power += step) {
    const int unit = std::min(power / 10, 3);
    ticks += fmt::format("{}'{}{}' {}", ticks.empty() ? "" : ", ", int64_t{1} << (power - 10 * unit),
                         std::array{"", "K", "M", "G"}[static_cast<size_t>(unit)], int64_t{1} << power);
  }
  return fmt::format("set xtics ({})\nset xrange [{}:{}]\n", ticks, least / 1.05, most * 1.05);
}

std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find(", ", begin), name.size());
    parts.push_back(name.substr(begin, end - begin));
    begin = end + 2;
  }
  return parts;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts)
    text += (text.empty() ? "" : ", ") + part;
  return text;
}

// Moves the parts common to all series names into the title, so that the legend shows only the differences.
void move_common_parts_to_title(Plot& plot) {
  if (plot.series.size() < 2) return;
  std::vector<std::string> common;
  for (const std::string& part : parts_of(plot.series.front().name)) {
    const bool everywhere = std::all_of(plot.series.begin(), plot.series.end(), [&](const PlotSeries& each) {
      const std::vector<std::string> parts = parts_of(each.name);
      return std::find(parts.begin(), parts.end(), part) != parts.end();
    });
    if (everywhere) common.push_back(part);
  }
  if (common.empty()) return;
  plot.title += ": " + joined(common);
  for (PlotSeries& series : plot.series) {
    std::vector<std::string> parts = parts_of(series.name);
    std::erase_if(
        parts, [&](const std::string& part) { return std::find(common.begin(), common.end(), part) != common.end(); });
    series.name = joined(parts);
  }
}

std::string data_blocks(const Plot& plot) {
  std::string text;
  for (size_t s = 0; s < plot.series.size(); ++s) {
    text += fmt::format("$series{} << END\n", s);
    for (const PlotPoint& point : plot.series[s].points) {
      if (!shown(plot, point)) continue;
      const bool bar = point.low < point.y || point.high > point.y;
      text += fmt::format("{} {} {} {}\n", point.x, point.y, bar ? point.low : point.y, bar ? point.high : point.y);
    }
    text += "END\n";
  }
  return text;
}

struct Ended {
  int status = 0;
  std::string output;
};

// Runs `script` in gnuplot without the user's settings (-d). The limit of half a minute is a hundred times what it
// takes.
Ended run_gnuplot(const std::string& script) {
  std::error_code failed;
  std::filesystem::path folder = std::filesystem::temp_directory_path(failed);
  if (failed) folder = "/tmp";
  std::string name = (folder / "brigade-plot-XXXXXX").string();
  const int file = mkstemp(name.data());
  if (file < 0) throw IoError("cannot make a file for gnuplot in {}: {}", folder.string(), std::strerror(errno));
  close(file);
  const std::unique_ptr<std::string, void (*)(std::string*)> removed(&name, [](std::string* n) { unlink(n->c_str()); });
  write_file(name, script);
  const std::string command = "timeout 30 gnuplot -d '" + name + "' 2>&1";
  FILE* const out = popen(command.c_str(), "r");
  if (!out) throw IoError("cannot start gnuplot");
  Ended ended;
  std::array<char, 4096> room;
  for (size_t count = 0; (count = std::fread(room.data(), 1, room.size(), out)) > 0;)
    ended.output.append(room.data(), count);
  ended.status = pclose(out);
  return ended;
}

bool has_gnuplot() {
  const char* const path = std::getenv("PATH");
  std::string rest = path ? path : "";
  for (size_t colon = 0; colon != std::string::npos;) {
    colon = rest.find(':');
    const std::filesystem::path file = std::filesystem::path(rest.substr(0, colon)) / "gnuplot";
    if (access(file.c_str(), X_OK) == 0) return true;
    if (colon != std::string::npos) rest = rest.substr(colon + 1);
  }
  return false;
}

}  // namespace

const std::vector<std::string>& series_colours() {
  static const std::vector<std::string> colours{"#1f78c8", "#d55e00", "#008f68", "#b35fa0",
                                                "#8a7a00", "#7b6bd6", "#c0504d", "#3d8b95"};
  return colours;
}

std::string gnuplot_script(const Plot& given) {
  Plot plot = given;
  move_common_parts_to_title(plot);
  // The legend is below the plot, two series per line.
  const size_t height = 440 + 18 * ((plot.series.size() + 1) / 2);
  std::string script = fmt::format("set terminal svg size 860,{} dynamic noenhanced font 'sans-serif,13'\n", height);
  script += fmt::format("set title {} tc rgb '{}'\n", in_quotes(plot.title), kInk);
  script += fmt::format("set xlabel {} offset 0,0.3 tc rgb '{}'\nset ylabel {} tc rgb '{}'\n", in_quotes(plot.x_label),
                        kInk, in_quotes(plot.y_label), kInk);
  script += fmt::format(
      "set border 3 lc rgb '{0}'\nset tics nomirror tc rgb '{0}'\nset key below left maxcols 2 Left reverse tc rgb '{0}'\n",
      kInk);
  script += "set grid lc rgb '#8c8c8c' lw 0.4\nset bars small\n";
  if (plot.x_log) script += plot.x_bytes ? "set logscale x 2\n" : "set logscale x\n";
  if (plot.y_log) script += "set logscale y\n";
  if (!plot.y_log) script += "set yrange [0:*]\n";
  if (plot.x_bytes) script += byte_axis(plot);
  script += data_blocks(plot) + "plot ";
  for (size_t s = 0; s < plot.series.size(); ++s) {
    script += fmt::format("{}$series{} using 1:2:3:4 with yerrorlines lw 1.8 pt {} ps 0.6 lc rgb '{}' title {}",
                          s == 0 ? "" : ", ", s, 4 + s % 10, series_colours()[s % series_colours().size()],
                          in_quotes(plot.series[s].name));
  }
  return script + "\n";
}

void check_plot(const std::string& path) {
  if (!path.ends_with(".svg")) throw ValueError("--plot writes SVG: expected a file that ends in .svg, got '{}'", path);
  check_output(path);
  if (!has_gnuplot())
    throw IoError(
        "--plot needs the program gnuplot, which is not there; install it (Debian, Ubuntu: apt install "
        "gnuplot-nox), or leave --plot out and plot the results of --csv elsewhere");
}

void write_plot(const std::string& path, const Plot& plot) {
  const auto empty = [&](const PlotSeries& series) {
    return std::none_of(series.points.begin(), series.points.end(), [&](const PlotPoint& p) { return shown(plot, p); });
  };
  Plot drawn = plot;
  std::erase_if(drawn.series, empty);
  if (drawn.series.empty()) throw ValueError("nothing to plot: '{}' has no point", plot.title);
  const Ended ended = run_gnuplot(gnuplot_script(drawn));
  std::string svg = ended.output;
  const size_t inside = svg.find("<defs>");
  if (ended.status != 0 || inside == std::string::npos || svg.find("</svg>") == std::string::npos)
    throw IoError("gnuplot failed to draw {} (status {}): {}", path,
                  WIFEXITED(ended.status) ? WEXITSTATUS(ended.status) : ended.status, svg.substr(0, 500));
  svg.insert(inside, kStyle);
  write_file(path, svg);
}

}  // namespace brigade::lab::bench
