// Takes the ways in turns, counts their collectives, and compares the times of neighbouring steps.
#include <brigade/lab/bench/steps.h>

#include <brigade/core/error.h>
#include <brigade/dist/groups/threads/run_threads.h>
#include <brigade/lab/json_output.h>
#include <brigade/lab/options.h>
#include <brigade/lab/results.h>
#include <brigade/lab/traffic.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <iostream>

namespace brigade::lab::bench {

namespace {

using nlohmann::json;

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

// Of the times of neighbouring steps, with the middle half of them.
json ratio(const Way& a, const Way& b) {
  std::vector<double> ratios;
  for (size_t i = 0; i < a.ms.size(); ++i)
    ratios.push_back(a.ms[i] / b.ms[i]);
  json found = statistics(ratios);
  found["low"] = quantile(ratios, 0.25);
  found["high"] = quantile(ratios, 0.75);
  found["of_minima"] = quantile(a.ms, 0) / quantile(b.ms, 0);
  return found;
}

json row_of(const std::vector<Way>& ways, const Way& way, const StepsOptions& options, int ranks) {
  const auto steps = static_cast<double>(way.ms.size());
  json ratios = json::object();
  for (const size_t other : way.compared_with)
    ratios[ways[other].name] = ratio(way, ways[other]);
  return {{"mode", way.name},
          {"ranks", ranks},
          {"backend", "threads"},
          {"layers", options.layers},
          {"width", options.width},
          {"step_ms", statistics(way.ms)},
          {"ratios", std::move(ratios)},
          {"collectives_per_step", static_cast<double>(way.collectives) / steps},
          {"bytes_per_step", way.bytes / steps}};
}

void print(const json& row) {
  std::string ratios;
  for (const auto& [other, ratio] : row.at("ratios").items()) {
    ratios +=
        fmt::format("{}{:.3f} [{:.3f} - {:.3f}] x {}", ratios.empty() ? "" : ", ", ratio.at("median").get<double>(),
                    ratio.at("low").get<double>(), ratio.at("high").get<double>(), other);
  }
  std::cout << fmt::format("{:<36} {:>9.3f} {:>9.3f} {:>12.2f} {:>10.1f}  {}\n", row.at("mode").get<std::string>(),
                           row.at("step_ms").at("median").get<double>(), row.at("step_ms").at("min").get<double>(),
                           row.at("collectives_per_step").get<double>(), row.at("bytes_per_step").get<double>() / 1024,
                           ratios);
}

struct Arguments {
  StepsOptions options;
  int ranks = 2;
  Results results;
};

void run(const StepsBenchmark& benchmark, Arguments& given) {
  if (given.options.width % benchmark.width_multiple_of != 0) {
    throw ValueError("bench {}: --width is a multiple of {}, got {}", benchmark.name, benchmark.width_multiple_of,
                     given.options.width);
  }
  given.results.begin();
  dist::run_threads(given.ranks, [&](const dist::ProcessGroupPtr& group) {
    std::vector<Way> ways = benchmark.ways(group, given.options);
    interleave(*group, ways, benchmark.warm_up, given.options.steps);
    if (group->rank() != 0) return;
    std::cout << fmt::format("{} layers of width {}, {} steps of each way, interleaved; rank 0 of {} (threads)\n",
                             given.options.layers, given.options.width, given.options.steps, given.ranks);
    std::cout << fmt::format("{:<36} {:>9} {:>9} {:>12} {:>10}  {}\n", "way", "median ms", "minimum", "collectives",
                             "KiB", "ratio of neighbouring steps [middle half]");
    for (const Way& way : ways) {
      json row = row_of(ways, way, given.options, given.ranks);
      print(row);
      given.results.add(std::move(row));
    }
  });
  given.results.write();
}

}  // namespace

void interleave(dist::ProcessGroup& group, std::vector<Way>& ways, int warm_up, int steps) {
  using Clock = std::chrono::steady_clock;
  for (int step = -warm_up; step < steps; ++step) {
    for (size_t k = 0; k < ways.size(); ++k) {
      Way& way = ways[(k + static_cast<size_t>(step + warm_up)) % ways.size()];
      group.barrier();
      const uint64_t before = latest_collective(group);
      const auto begin = Clock::now();
      way.step();
      const double ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
      if (step < 0) continue;
      way.ms.push_back(ms);
      const Traffic traffic = traffic_since(group, before);
      way.collectives += traffic.collectives;
      way.bytes += traffic.bytes;
    }
  }
}

void add_steps_benchmark(Command& bench, const StepsBenchmark& benchmark) {
  auto given = std::make_shared<Arguments>();
  given->options = benchmark.usual;
  Command command = bench.add_command(benchmark.name, benchmark.about);
  command.footer(
      fmt::format("Examples:\n  brigade bench {0}\n  brigade bench {0} --layers {1} --steps 20 --json -\n"
                  "  brigade bench {0} --csv {0}.csv\n{2}",
                  benchmark.name, 2 * benchmark.usual.layers, benchmark.footer));
  command.add_option("--layers", given->options.layers, "layers or blocks of the model")
      .check(number_from(benchmark.least_layers, 10000))
      .show_default();
  command.add_option("--width", given->options.width, "their width").check(number_from(1, 1 << 16)).show_default();
  command.add_option("--steps", given->options.steps, "timed steps of each way")
      .check(number_from(1, 1'000'000))
      .show_default();
  command.add_option("--ranks", given->ranks, "number of ranks, which are threads")
      .check(number_from(1, 64))
      .show_default();
  given->results.add_options(command);
  command.action([given, benchmark] {
    run(benchmark, *given);
    return 0;
  });
}

}  // namespace brigade::lab::bench
