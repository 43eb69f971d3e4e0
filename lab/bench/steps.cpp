// brigade bench unused, diagnosis, mechanisms, batch-norm: runs the steps on ranks, and compares the times of
// neighboring steps.
#include <brigade/lab/bench/benchmark.h>
#include <brigade/lab/bench/on_ranks.h>
#include <brigade/lab/bench/steps.h>
#include <brigade/lab/options.h>

#include <brigade/core/error.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>

namespace brigade::lab::bench {
namespace {

using nlohmann::json;

struct Arguments {
  BenchOptions options;
  StepsOptions model;
};

Samples in_milliseconds(Samples samples) {
  for (std::vector<double>& of_rank : samples) {
    for (double& time : of_rank)
      time /= 1000;
  }
  return samples;
}

// RATIO of docs/cli.md.
json ratio(const Samples& a, const Samples& b) {
  json found = to_json(spread_of(ratios(a, b)));
  found["of_minima"] = spread_of(a).min / spread_of(b).min;
  return found;
}

// The results of a way, over all ranks.
json found_of(const RanksRun& run, size_t row) {
  const json& rows = run.rank(0);
  json compared = json::object();
  for (const size_t other : rows[row].at("compared_with"))
    compared[rows[other].at("mode").get<std::string>()] = ratio(run.samples(row), run.samples(other));
  return {{"step_ms", to_json(spread_of(in_milliseconds(run.samples(row))))},
          {"ratios", std::move(compared)},
          {"collectives_per_step", rows[row].at("collectives")},
          {"bytes_per_step", rows[row].at("bytes")}};
}

void print(const json& key, const json& found, const std::string& before) {
  std::string compared;
  for (const auto& [other, ratio] : found.at("ratios").items()) {
    compared +=
        fmt::format("{}{:.3f} [{:.3f} - {:.3f}] x {}", compared.empty() ? "" : ", ", ratio.at("median").get<double>(),
                    ratio.at("low").get<double>(), ratio.at("high").get<double>(), other);
  }
  const json& step = found.at("step_ms");
  const json& bytes = found.at("bytes_per_step");
  std::cout << fmt::format(
      "{:<36} {:>9.3f} {:>9.3f} {:>7} {:>12.2f} {:>10}{}  {}\n", key.at("mode").get<std::string>(),
      step.at("median").get<double>(), step.at("min").get<double>(),
      step.at("noise").is_null() ? "-" : fmt::format("{:.1f}", step.at("noise").get<double>() * 100),
      found.at("collectives_per_step").get<double>(),
      bytes.is_null() ? "-" : fmt::format("{:.1f}", bytes.get<double>() / 1024),
      before.empty() ? "" : fmt::format(" {:>8}", before), compared);
}

// Runs one backend and number of ranks: prints a table, adds its rows, and adds a point to each way's line.
void run_once(const StepsBenchmark& benchmark, Arguments& given, const std::string& backend, int ranks, Plot& plot) {
  const RoundLimits limits = given.options.limits();
  const std::vector<RanksRun> runs = run_on_ranks(kStepsJob,
                                                  {{"benchmark", benchmark.name},
                                                   {"layers", given.model.layers},
                                                   {"width", given.model.width},
                                                   {"limits", to_json(limits)}},
                                                  {backend}, ranks);
  const RanksRun& run = runs.front();
  std::cout << fmt::format("{} layers of width {}, steps interleaved, {} ranks ({}); {}\n", given.model.layers,
                           given.model.width, ranks, backend, in_words(rounds_run_from(run.rank(0).at(0)), limits));
  std::cout << fmt::format("{:<36} {:>9} {:>9} {:>7} {:>12} {:>10}{}  {}\n", "way", "median ms", "minimum", "noise %",
                           "collectives", "KiB", given.options.report.has_baseline() ? "   before" : "",
                           "ratio of neighbouring steps [middle half]");
  for (size_t row = 0; row < run.rank(0).size(); ++row) {
    const json key{{"benchmark", benchmark.name}, {"mode", run.rank(0)[row].at("mode")}, {"ranks", ranks},
                   {"backend", backend},          {"layers", given.model.layers},        {"width", given.model.width}};
    const json found = found_of(run, row);
    print(key, found, given.options.report.add(key, found));
    const json& step = found.at("step_ms");
    const std::string name = fmt::format("{}, {}", key.at("mode").get<std::string>(), backend);
    if (plot.series.empty() ||
        std::none_of(plot.series.begin(), plot.series.end(), [&](const PlotSeries& each) { return each.name == name; }))
      plot.series.push_back({name, {}});
    for (PlotSeries& series : plot.series) {
      if (series.name == name)
        series.points.push_back({static_cast<double>(ranks), step.at("median"), step.at("low"), step.at("high")});
    }
  }
}

int run(const StepsBenchmark& benchmark, Arguments& given) {
  if (given.model.width % benchmark.width_multiple_of != 0) {
    throw ValueError("bench {}: --width is a multiple of {}, got {}", benchmark.name, benchmark.width_multiple_of,
                     given.model.width);
  }
  given.options.report.begin();
  Plot plot{
      .title = "brigade bench " + benchmark.name, .x_label = "ranks", .y_label = "time of a step, ms", .series = {}};
  for (const std::string& backend : given.options.backends()) {
    for (const int ranks : given.options.ranks())
      run_once(benchmark, given, backend, ranks, plot);
  }
  given.options.report.write(plot);
  return 0;
}

void add_command(Command& bench, const StepsBenchmark& benchmark) {
  auto given = std::make_shared<Arguments>();
  given->model = benchmark.usual;
  Command command = bench.add_command(benchmark.name, benchmark.about);
  command.footer(
      fmt::format("Examples:\n  brigade bench {0}\n  brigade bench {0} --layers {1} --steps 20 --json -\n"
                  "  brigade bench {0} --ranks 1,2,4 --backends shm --plot {0}.svg\n"
                  "  brigade bench {0} --csv {0}.csv\n{2}",
                  benchmark.name, 2 * benchmark.usual.layers, benchmark.footer));
  command.add_option("--layers", given->model.layers, "layers or blocks of the model")
      .check(number_from(benchmark.least_layers, 10000))
      .show_default();
  command.add_option("--width", given->model.width, "their width").check(number_from(1, 1 << 16)).show_default();
  given->options.add_to(command, {.ranks = "2",
                                  .backends = "threads",
                                  .rounds = fmt::format("{}-{}", benchmark.steps / 2, 5 * benchmark.steps),
                                  .seconds = 20,
                                  .warm_up = benchmark.warm_up,
                                  .measure = "step_ms"});
  command.action([given, benchmark] { return run(benchmark, *given); });
}

const AddBenchmark add(5, [](Command& bench) {
  for (const StepsBenchmark& each : steps_benchmarks())
    add_command(bench, each);
});

}  // namespace
}  // namespace brigade::lab::bench
