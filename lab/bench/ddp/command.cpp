// brigade bench ddp: whole training steps of seven networks in the modes of DDP, interleaved, with
// where the backward's time went.
#include <brigade/lab/bench/benchmark.h>
#include <brigade/lab/bench/byte_sizes.h>
#include <brigade/lab/bench/ddp/job.h>
#include <brigade/lab/bench/ddp/replica.h>
#include <brigade/lab/bench/ddp/summary.h>
#include <brigade/lab/bench/simulated_link.h>
#include <brigade/lab/options.h>
#include <brigade/lab/rank_job.h>
#include <brigade/lab/results.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <memory>

namespace brigade::lab::bench {

namespace {

using nlohmann::json;

struct Arguments {
  std::vector<std::string> models{"mlp", "cnn", "transformer", "many", "big"};
  std::vector<std::string> modes{"local",    "strict",        "find_unused", "unused10",      "static_graph", "copies",
                                 "no_sync4", "diagnosis_off", "noop",        "fp16_compress", "bf16_compress"};
  std::vector<std::string> caps;
  std::string backend = "shm";
  std::string link;
  int ranks = 2;
  int rounds = 20;
  int warm_up = 4;
  bool pin = false;
  Results results;
};

// Before any rank starts: throws ValueError.
json checked(Arguments& given) {
  check_backend(given.backend);
  if (!given.link.empty()) {
    parse_link(given.link);
    if (given.backend != "threads" && given.backend != "shm")
      throw ValueError("--link stands on --backend threads or shm, got {}", given.backend);
  }
  for (const std::string& model : given.models)
    find_workload(model);
  std::vector<std::string> modes = given.modes;
  for (const std::string& cap : given.caps)
    modes.push_back("cap" + cap);
  for (const std::string& mode : modes)
    find_mode(mode);
  return {{"models", given.models}, {"modes", modes},   {"rounds", given.rounds}, {"warm_up", given.warm_up},
          {"link", given.link},     {"pin", given.pin}};
}

// "12.3 %" of a row's part in its backward; "-" where it is not known.
std::string cell(const json& row, const char* part) {
  return row.contains(part) ? fmt::format("{:.3f}", row.at(part).at("median").get<double>()) : "-";
}

std::string ratio(const json& row, const char* other) {
  return row.at("ratios").contains(other)
             ? fmt::format("{:.3f}", row.at("ratios").at(other).at("median").get<double>())
             : "-";
}

void print(const json& rows, const Arguments& given) {
  std::cout << fmt::format(
      "step: of the slowest rank, zero_grad to SGD; medians of {} interleaved rounds on {} ranks over {}{}, ms\n"
      "hidden: of the time that buckets are on the way; then, when all nodes have run: waiting for peers, reducing, the "
      "rest\n",
      given.rounds, given.ranks, given.backend,
      given.link.empty() ? "" : ", simulated link of " + in_words(parse_link(given.link)));
  std::string model;
  for (const json& row : rows) {
    if (row.at("model") != model) {
      model = row.at("model");
      std::cout << fmt::format("\n{}: {}; {} tensors, {}\n", model, find_workload(model).about,
                               row.at("tensors").get<size_t>(), byte_size_in_words(row.at("bytes").get<int64_t>()));
      std::cout << fmt::format("{:<14} {:>9} {:>9} {:>8} {:>8} {:>8} {:>8} {:>9} {:>9} {:>9} {:>9}\n", "mode", "step ms",
                               "[min]", "x local", "x strict", "buckets", "hidden", "on way", "waiting", "reducing",
                               "rest");
    }
    std::cout << fmt::format("{:<14} {:>9.3f} {:>9.3f} {:>8} {:>8} {:>8} {:>8} {:>9} {:>9} {:>9} {:>9}\n",
                             row.at("mode").get<std::string>(), row.at("step_ms").at("median").get<double>(),
                             row.at("step_ms").at("min").get<double>(), ratio(row, "local"), ratio(row, "strict"),
                             row.at("buckets").get<size_t>(),
                             row.contains("overlap") ? fmt::format("{:.1f} %", 100 * row.at("overlap").get<double>()) : "-",
                             cell(row, "comm_ms"),
                             row.value("peers_known", false) ? cell(row, "waiting_ms") : "-", cell(row, "reducing_ms"),
                             cell(row, "placing_ms"));
  }
}

void run(Arguments& given) {
  const json arguments = checked(given);
  given.results.begin();
  const RankJobOutcome outcome =
      run_rank_job(kDdpJob, arguments.dump(), given.backend, given.ranks, std::chrono::seconds(120));
  require_ok(outcome);
  std::vector<json> ranks;
  for (const RankResult& rank : outcome.ranks)
    ranks.push_back(json::parse(rank.text));
  json rows = ddp_rows(ranks);
  print(rows, given);
  for (json& row : rows) {
    row["ranks"] = given.ranks;
    row["backend"] = given.backend;
    row["link"] = given.link;
    row["pinned"] = given.pin;
    given.results.add(std::move(row));
  }
  given.results.write();
}

void add_command(Command& bench) {
  auto given = std::make_shared<Arguments>();
  Command command = bench.add_command("ddp", "Training steps of seven networks in each mode of DDP, and where their time goes");
  std::string models;
  for (const Workload& each : workloads())
    models += fmt::format("  {:<14} {}\n", each.name, each.about);
  command.footer(fmt::format(
      "Models:\n{}\nModes:\n{}\nExamples:\n  brigade bench ddp\n  brigade bench ddp --models resnet18,gpt --modes "
      "local,strict --caps 0.25,1,4,16,inf\n  brigade bench ddp --models transformer --modes local --caps 0.25,1,4,16 "
      "--link 20us,1GB/s --backend threads --json -",
      models, modes_in_words()));
  command.add_option("--models", given->models, "networks, separated by commas").separated_by(',').show_default();
  command.add_option("--modes", given->modes, "modes, separated by commas").separated_by(',').show_default();
  command.add_option("--caps", given->caps, "MiB: the modes cap1, cap4, ... as well, separated by commas")
      .separated_by(',');
  command.add_option("--backend", given->backend, "one of " + backends_in_words()).show_default();
  command.add_option("--link", given->link,
                     "LATENCYus,BANDWIDTHGB/s: a link of this speed between the ranks, which takes no processor's time "
                     "(on threads or shm)");
  command.add_option("--ranks", given->ranks, "number of ranks").check(number_from(1, 64)).show_default();
  command.add_option("--rounds", given->rounds, "counted steps of each mode, in turns")
      .check(number_from(1, 1'000'000))
      .show_default();
  command.add_option("--warm-up", given->warm_up, "steps of each mode before them")
      .check(number_from(1, 1000))
      .show_default();
  command.add_flag("--pin", given->pin, "each rank on a core of its own, with one thread");
  given->results.add_options(command);
  command.action([given] {
    run(*given);
    return 0;
  });
}

const AddBenchmark add(&add_command);

}  // namespace

}  // namespace brigade::lab::bench
