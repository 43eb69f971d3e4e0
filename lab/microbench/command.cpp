// brigade bench ops, autograd, optim: microbenchmarks of one process.
#include <brigade/core/error.h>
#include <brigade/lab/bench/benchmark.h>
#include <brigade/lab/json_output.h>
#include <brigade/lab/microbench/micro_case.h>
#include <brigade/lab/options.h>
#include <brigade/lab/results.h>

#include <fmt/format.h>
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
  Results results;
};

// A line in, a line out: times the case that is named, so that another program can take turns.
void follow(const Arguments& given) {
  std::string name;
  while (std::getline(std::cin, name)) {
    const json answer = {{"case", name}, {"us", time_micro_case(find_micro_case(given.suite, name), given.seconds)}};
    std::cout << answer.dump() << std::endl;
  }
}

void run(Arguments& given) {
  const bool per_operation = given.suite == "autograd";
  const std::regex filter(given.filter);
  std::vector<MicroCase> cases = micro_cases(given.suite);
  std::erase_if(cases, [&](const MicroCase& each) { return !std::regex_search(each.name, filter); });
  if (cases.empty()) throw ValueError("no case of {} matches '{}'", given.suite, given.filter);
  std::cout << fmt::format("{:<38} {:>12} {:>12} {:>10} {:>10}\n", "case", per_operation ? "ns, median" : "us, median",
                           "minimum", "GFLOP/s", "GB/s");
  for (const MicroCase& each : cases) {
    const json stat = statistics(time_micro_case(each, given.seconds));
    const double best = stat.at("min");
    const double factor = per_operation ? 1000 : 1;
    const auto rate = [&](double amount) { return amount > 0 ? fmt::format("{:.1f}", amount / best / 1e3) : "-"; };
    std::cout << fmt::format("{:<38} {:>12.2f} {:>12.2f} {:>10} {:>10}\n", each.name,
                             stat.at("median").get<double>() * factor, best * factor, rate(each.flops),
                             rate(each.bytes))
              << std::flush;
    json row = {{"case", each.name}, {"dtype", each.dtype}, {"device", "cpu"}, {"time_us", stat}};
    if (per_operation) row["ns_per_node"] = stat.at("median").get<double>() * 1000;
    if (each.flops > 0) row["gflops"] = each.flops / best / 1e3;
    if (each.bytes > 0) row["GBps"] = each.bytes / best / 1e3;
    given.results.add(std::move(row));
  }
  given.results.write();
}

void add_suite(Command& bench, const std::string& suite, const std::string& about) {
  auto given = std::make_shared<Arguments>();
  given->suite = suite;
  Command command = bench.add_command(suite, about);
  command.footer("Examples:\n  brigade bench " + suite + "\n  brigade bench " + suite +
                 " --cases '1024' --threads 1 --json -\nBeside PyTorch in the same run: bench/beside_torch.py " +
                 suite);
  command.add_option("--cases", given->filter, "only cases whose name matches this regular expression")
      .check(regular_expression());
  command.add_option("--seconds", given->seconds, "time for each case").check(number_from(0.001, 600.0)).show_default();
  command.add_option("--threads", given->threads, "threads of the kernels (0: as OpenMP decides)")
      .check(number_from(0, 1024))
      .show_default();
  command.add_flag("--list", given->list, "print the names of the cases");
  given->results.add_options(command);
  command.add_flag("--follow", given->follow, "time the cases named on standard input, one answer a line")
      .excludes("--list")
      .excludes("--json")
      .excludes("--csv");
  command.action([given] {
#ifdef _OPENMP
    if (given->threads > 0) omp_set_num_threads(given->threads);
#endif
    if (given->list) {
      given->results.begin();
      for (const MicroCase& each : micro_cases(given->suite)) {
        std::cout << each.name << "\n";
        given->results.add({{"case", each.name}, {"dtype", each.dtype}});
      }
      given->results.write();
    } else if (given->follow) {
      follow(*given);
    } else {
      given->results.begin();
      run(*given);
    }
    return 0;
  });
}

void add_suites(Command& bench) {
  add_suite(bench, "ops", "Operations at the sizes of models, forward and backward");
  add_suite(bench, "autograd", "What recording an operation and running its backward costs");
  add_suite(bench, "optim", "Steps of optimizers over ten million parameters");
}

const AddBenchmark add_microbenchmarks(&add_suites);

}  // namespace

}  // namespace brigade::lab
