// brigade bench ddp: whole training steps of seven networks in the modes of DDP, interleaved, with a breakdown of
// the backward's time.
#include <brigade/core/device_runtime.h>
#include <brigade/core/error.h>
#include <brigade/lab/bench/benchmark.h>
#include <brigade/lab/bench/ddp/replica.h>
#include <brigade/lab/bench/ddp/summary.h>
#include <brigade/lab/bench/on_ranks.h>
#include <brigade/lab/bench/simulated_link.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

namespace brigade::lab::bench {
namespace {

using nlohmann::json;

struct Arguments {
  BenchOptions options;
  std::vector<std::string> models{"mlp", "cnn", "transformer", "many", "big"};
  std::vector<std::string> modes{"local",    "strict",        "find_unused", "unused10",      "static_graph", "copies",
                                 "no_sync4", "diagnosis_off", "noop",        "fp16_compress", "bf16_compress"};
  std::vector<std::string> caps;
  std::string link;
  std::string overlap_file;
  bool pin = false;
  std::string device = "cpu";
};

// Runs before any rank starts. Throws ValueError.
json checked(const Arguments& given) {
  if (!given.link.empty()) check_carries_link(given.options.backends());
  for (const std::string& model : given.models)
    find_workload(model);
  std::vector<std::string> modes = given.modes;
  for (const std::string& cap : given.caps)
    modes.push_back("cap" + cap);
  const Device device = choose_device(given.device);  // throws here instead of on every rank
  for (const std::string& mode : modes)
    check_runs_on(find_mode(mode), device.type);
  const bool plots = given.options.report.wants_plot() || !given.overlap_file.empty();
  if (plots && given.caps.empty() && (given.options.ranks().size() < 2 || !given.overlap_file.empty()))
    throw ValueError(
        "a plot needs several bucket caps (--caps 0.25,1,4,16), --plot alone also several --ranks (1,2,4)");
  if (!given.overlap_file.empty()) check_plot(given.overlap_file);
  return {{"models", given.models}, {"modes", modes},   {"limits", to_json(given.options.limits())},
          {"link", given.link},     {"pin", given.pin}, {"device", given.device}};
}

std::string median_of(const json& row, const char* part) {
  return row.contains(part) ? fmt::format("{:.3f}", row.at(part).at("median").get<double>()) : "-";
}

std::string ratio_of(const json& row, const char* other) {
  return row.at("ratios").contains(other) ? fmt::format("{:.3f}", row.at("ratios").at(other).at("median").get<double>())
                                          : "-";
}

void print_title(const json& row) {
  const RoundsRun run = rounds_run_from(row);
  const std::string model = row.at("model");
  std::cout << fmt::format("\n{}: {}; {}; {} rounds in turns, noise of a rank's median up to {:.1f} %\n", model,
                           find_workload(model).about, byte_size_in_words(row.at("bytes").get<int64_t>()), run.rounds,
                           100 * run.noise);
  std::cout << fmt::format("{:<14} {:<8} {:>9} {:>9} {:>8} {:>8} {:>8} {:>8} {:>9} {:>9} {:>9} {:>9}\n", "mode",
                           "backend", "step ms", "min", "x local", "x strict", "buckets", "hidden", "on way", "waiting",
                           "reducing", "rest");
}

void print(const json& row, const std::string& against) {
  std::cout << fmt::format(
      "{:<14} {:<8} {:>9} {:>9.3f} {:>8} {:>8} {:>8} {:>8} {:>9} {:>9} {:>9} {:>9} {}\n",
      row.at("mode").get<std::string>(), row.at("backend").get<std::string>(), median_of(row, "step_ms"),
      row.at("step_ms").at("min").get<double>(), ratio_of(row, "local"), ratio_of(row, "strict"),
      row.at("buckets").get<size_t>(),
      row.contains("overlap") ? fmt::format("{:.1f} %", 100 * row.at("overlap").get<double>()) : "-",
      median_of(row, "comm_ms"), median_of(row, "waiting_ms"), median_of(row, "reducing_ms"),
      median_of(row, "placing_ms"), against);
}

// Adds the rows of one number of ranks to the report and to `all`, and prints them.
void tell(const json& rows, int ranks, Arguments& given, json& all) {
  std::string model;
  for (const json& row : rows) {
    json key{{"ranks", ranks}, {"link", given.link}, {"pinned", given.pin}};
    if (given.device != "cpu") key["device"] = given.device;
    json found = row;
    for (const char* name : {"model", "backend", "mode"}) {
      key[name] = row.at(name);
      found.erase(name);
    }
    if (row.at("model") != model) print_title(row);
    model = row.at("model");
    print(row, given.options.report.add(key, found));
    found.update(key);
    all.push_back(std::move(found));
  }
}

void run(Arguments& given) {
  const json arguments = checked(given);
  given.options.report.begin();
  std::cout
      << "step: of the slowest rank, from zero_grad to the end of SGD, on a device too. hidden: of the time that buckets are on the way, "
         "what passes while nodes of backward run.\nwaiting (for peers), reducing, rest: after the last node. Medians, "
         "milliseconds.\n";
  json all = json::array();
  for (const int ranks : given.options.ranks()) {
    std::cout << fmt::format("\n{} {}{}\n", ranks, ranks == 1 ? "rank" : "ranks",
                             given.link.empty() ? "" : ", a simulated link of " + in_words(parse_link(given.link)));
    for (const RanksRun& run : run_on_ranks(kDdpJob, arguments, given.options.backends(), ranks))
      tell(ddp_rows(run), ranks, given, all);
  }
  if (!given.overlap_file.empty()) write_plot(given.overlap_file, overlap_plot(all));
  given.options.report.write(given.options.report.wants_plot() ? step_plot(all) : Plot{});
}

void add_command(Command& bench) {
  auto given = std::make_shared<Arguments>();
  Command command =
      bench.add_command("ddp", "Training steps of seven networks in each mode of DDP, and where their time goes");
  std::string models;
  for (const Workload& each : workloads())
    models += fmt::format("  {:<14} {}\n", each.name, each.about);
  command.footer(fmt::format(
      "Models:\n{}Modes:\n{}Examples:\n  brigade bench ddp\n  brigade bench ddp --models resnet18,gpt --modes "
      "local,strict --caps 0.25,1,4,16,inf\n  brigade bench ddp --models transformer --modes local --caps 0.25,1,4,16 "
      "--backend threads --link 20us,1GB/s\n      --plot step.svg --plot-overlap overlap.svg --json steps.json\n  brigade "
      "bench ddp --device cuda --backend nccl --ranks 1 --modes local,strict,graph",
      models, modes_in_words()));
  given->options.add_to(command, {.ranks = "2",
                                  .backends = "shm",
                                  .rounds = "5-100",
                                  .noise_percent = 2,
                                  .seconds = 30,
                                  .warm_up = 3,
                                  .measure = "step_ms"});
  command.add_option("--models", given->models, "networks, separated by commas").separated_by(',').show_default();
  command.add_option("--modes", given->modes, "modes, separated by commas").separated_by(',').show_default();
  command.add_option("--caps", given->caps, "MiB: the modes cap1, cap4, ... as well, separated by commas")
      .separated_by(',');
  add_link(command, given->link,
           "a link of this speed between the ranks, which takes no processor's time (on threads or shm)");
  add_pin(command, given->pin);
  add_device(command, given->device);
  command.add_option("--plot-overlap", given->overlap_file, "draw the hidden share over the caps into this file.svg");
  command.action([given] {
    run(*given);
    return 0;
  });
}

const AddBenchmark add(3, &add_command);

}  // namespace
}  // namespace brigade::lab::bench
