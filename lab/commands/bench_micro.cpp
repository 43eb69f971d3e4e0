// brigade bench ops, autograd, optim: microbenchmarks of one process.
#include <brigade/lab/commands/bench_micro.h>

#include <brigade/core/error.h>
#include <brigade/lab/json_output.h>
#include <brigade/lab/microbench/micro_case.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>
#include <regex>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace brigade::lab {

namespace {

using nlohmann::json;

struct Arguments {
  std::string suite;
  std::string filter;
  double seconds = 0.3;
  int threads = 0;
  bool list = false;
  bool follow = false;
  std::string json_file;
};

// A line in, a line out: times the case that is named, so that another program can take turns.
void follow(const Arguments& given) {
  std::string name;
  while (std::getline(std::cin, name)) {
    const json answer = {{"case", name}, {"us", time_micro_case(find_micro_case(given.suite, name), given.seconds)}};
    std::cout << answer.dump() << std::endl;
  }
}

void run(const Arguments& given) {
  const bool per_operation = given.suite == "autograd";
  json output = json_envelope(command_line());
  check_writable(given.json_file);
  std::ostream& table = given.json_file == "-" ? std::cerr : std::cout;
  table << fmt::format("{:<38} {:>12} {:>12} {:>10} {:>10}\n", "case", per_operation ? "ns, median" : "us, median",
                       "minimum", "GFLOP/s", "GB/s");
  const std::regex filter(given.filter);
  for (const MicroCase& each : micro_cases(given.suite)) {
    if (!std::regex_search(each.name, filter)) continue;
    const json stat = statistics(time_micro_case(each, given.seconds));
    const double best = stat.at("min");
    const double factor = per_operation ? 1000 : 1;
    const auto rate = [&](double amount) { return amount > 0 ? fmt::format("{:.1f}", amount / best / 1e3) : "-"; };
    table << fmt::format("{:<38} {:>12.2f} {:>12.2f} {:>10} {:>10}\n", each.name,
                         stat.at("median").get<double>() * factor, best * factor, rate(each.flops), rate(each.bytes))
          << std::flush;
    json row = {{"case", each.name}, {"dtype", each.dtype}, {"device", "cpu"}, {"time_us", stat}};
    if (per_operation) row["ns_per_node"] = stat.at("median").get<double>() * 1000;
    if (each.flops > 0) row["gflops"] = each.flops / best / 1e3;
    if (each.bytes > 0) row["GBps"] = each.bytes / best / 1e3;
    output["results"].push_back(std::move(row));
  }
  if (output["results"].empty()) throw ValueError("no case of " + given.suite + " matches '" + given.filter + "'");
  if (!given.json_file.empty()) write_json(given.json_file, output);
}

void add_suite(CLI::App& bench, int& exit_code, const std::string& suite, const std::string& about) {
  auto given = std::make_shared<Arguments>();
  given->suite = suite;
  CLI::App* command = bench.add_subcommand(suite, about);
  command->footer("Examples:\n  brigade bench " + suite + "\n  brigade bench " + suite +
                  " --cases '1024' --threads 1 --json -\nBeside PyTorch in the same run: bench/beside_torch.py " +
                  suite);
  command->add_option("--cases", given->filter, "only cases whose name matches this regular expression");
  command->add_option("--seconds", given->seconds, "time for each case")
      ->check(CLI::Range(0.001, 600.0))
      ->capture_default_str();
  command->add_option("--threads", given->threads, "threads of the kernels (0: as OpenMP decides)")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command->add_flag("--list", given->list, "print the names of the cases");
  command->add_flag("--follow", given->follow, "time the cases named on standard input, one answer a line");
  command->add_option("--json", given->json_file, "write the results as JSON to a file (- for standard output)");
  command->callback([given, &exit_code] {
#ifdef _OPENMP
    if (given->threads > 0) omp_set_num_threads(given->threads);
#endif
    if (given->list) {
      for (const MicroCase& each : micro_cases(given->suite))
        std::cout << each.name << "\n";
    } else if (given->follow) {
      follow(*given);
    } else {
      run(*given);
    }
    exit_code = 0;
  });
}

}  // namespace

void add_bench_micro(CLI::App& bench, int& exit_code) {
  add_suite(bench, exit_code, "ops", "Operations at the sizes of models, forward and backward");
  add_suite(bench, exit_code, "autograd", "What recording an operation and running its backward costs");
  add_suite(bench, exit_code, "optim", "Steps of optimizers over ten million parameters");
}

}  // namespace brigade::lab
