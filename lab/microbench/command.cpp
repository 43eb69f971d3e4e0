// brigade bench ops, autograd, optim, amp: microbenchmarks of one process.
#include <brigade/core/error.h>
#include <brigade/lab/bench/benchmark.h>
#include <brigade/lab/bench/spread.h>
#include <brigade/lab/json.h>
#include <brigade/lab/microbench/micro_case.h>
#include <brigade/lab/options.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <memory>
#include <regex>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace brigade::lab {
namespace {

using nlohmann::json;

struct Suite {
  std::string name, about;
  std::string example;      // a regular expression for --cases
  std::string dtypes = "";  // dtypes to choose from, if there are several
  std::string footer = "";  // shown below the examples
};

struct Arguments {
  bench::BenchOptions options;
  std::string filter;
  int threads = 0;
  bool list = false;
  bool follow = false;
};

// Reads the name of a case per line, times it, and prints one line, so that another program can alternate with this
// one.
void follow(const Suite& suite, double seconds) {
  std::string name;
  while (std::getline(std::cin, name)) {
    const json answer = {{"case", name}, {"us", time_micro_case(find_micro_case(suite.name, name), seconds)}};
    std::cout << answer.dump() << std::endl;
  }
}

std::vector<MicroCase> chosen_cases(const Suite& suite, const Arguments& given) {
  const std::regex filter(given.filter);
  const std::vector<DType> dtypes = given.options.dtypes();
  std::vector<MicroCase> cases = micro_cases(suite.name);
  std::erase_if(cases, [&](const MicroCase& each) {
    const bool other_dtype = !dtypes.empty() && std::none_of(dtypes.begin(), dtypes.end(),
                                                             [&](DType one) { return each.dtype == name(one); });
    return other_dtype || !std::regex_search(each.name, filter);
  });
  if (cases.empty()) throw ValueError("no case of {} matches '{}'", suite.name, given.filter);
  return cases;
}

// A case's time in a round is the median over ten milliseconds of calls, after warm-up calls that refill the
// caches. The inputs are made at the first turn.
bench::Turn turn_of(const MicroCase& micro_case) {
  return {micro_case.name, [micro_case, sample = std::function<double()>()]() mutable {
            if (!sample) sample = micro_case.prepare();
            return median(samples_for(sample, 0.01));
          }};
}

// Times below 10 get more digits.
std::string time_in_words(double time) { return time < 10 ? fmt::format("{:.4f}", time) : fmt::format("{:.2f}", time); }

void print(const MicroCase& each, size_t width, const json& found, double factor, const std::string& before) {
  const json& stat = found.at("time_us");
  const auto rate = [&](const char* name) {
    return found.contains(name) ? fmt::format("{:.1f}", found.at(name).get<double>()) : "-";
  };
  std::string beside;
  if (found.contains("ratio")) {
    const json& ratio = found.at("ratio");
    beside = fmt::format("{:.3f} [{:.3f} - {:.3f}] x {}", ratio.at("median").get<double>(),
                         ratio.at("low").get<double>(), ratio.at("high").get<double>(), each.beside);
  }
  const json& noise = stat.at("noise");
  std::cout << fmt::format("{:<{}} {:>12} {:>12} {:>7} {:>10} {:>10}{}  {}\n", each.name, width,
                           time_in_words(stat.at("median").get<double>() * factor),
                           time_in_words(stat.at("min").get<double>() * factor),
                           noise.is_null() ? "-" : fmt::format("{:.1f}", noise.get<double>() * 100), rate("gflops"),
                           rate("GBps"), before.empty() ? "" : fmt::format(" {:>8}", before), beside);
}

json found_of(const MicroCase& each, const std::vector<double>& us, const std::vector<MicroCase>& cases,
              const std::vector<bench::Turn>& turns, bool per_operation) {
  const bench::Spread time = bench::spread_of({us});
  json found{{"time_us", to_json(time)}};
  if (per_operation) found["ns_per_node"] = time.median * 1000;
  if (each.flops > 0) found["gflops"] = each.flops / time.min / 1e3;
  if (each.bytes > 0) found["GBps"] = each.bytes / time.min / 1e3;
  for (size_t i = 0; i < cases.size(); ++i) {
    if (cases[i].name == each.beside) found["ratio"] = to_json(bench::spread_of(bench::ratios({us}, {turns[i].us})));
  }
  return found;
}

void run(const Suite& suite, Arguments& given) {
  const bool per_operation = suite.name == "autograd";
  const std::vector<MicroCase> cases = chosen_cases(suite, given);
  std::vector<bench::Turn> turns;
  for (const MicroCase& each : cases)
    turns.push_back(turn_of(each));
  const bench::RoundLimits limits = given.options.limits();
  const bench::RoundsRun run = take_turns(turns, limits);
  size_t width = 0;
  for (const MicroCase& each : cases)
    width = std::max(width, each.name.size());
  std::cout << in_words(run, limits) << "\n";
  std::cout << fmt::format("{:<{}} {:>12} {:>12} {:>7} {:>10} {:>10}{}  {}\n", "case", width,
                           per_operation ? "ns, median" : "us, median", "minimum", "noise %", "GFLOP/s", "GB/s",
                           given.options.report.has_baseline() ? "   before" : "",
                           "ratio in the same rounds [quartiles]");
  for (size_t i = 0; i < cases.size(); ++i) {
    const json found = found_of(cases[i], turns[i].us, cases, turns, per_operation);
    const json key{{"case", cases[i].name}, {"dtype", cases[i].dtype}, {"device", "cpu"}};
    print(cases[i], width, found, per_operation ? 1000 : 1, given.options.report.add(key, found));
  }
  given.options.report.write();
}

void list(const Suite& suite, Arguments& given) {
  for (const MicroCase& each : chosen_cases(suite, given)) {
    std::cout << each.name << "\n";
    given.options.report.add_unmeasured({{"case", each.name}, {"dtype", each.dtype}});
  }
  given.options.report.write();
}

void add_suite(Command& bench, const Suite& suite) {
  auto given = std::make_shared<Arguments>();
  Command command = bench.add_command(suite.name, suite.about);
  command.footer(
      fmt::format("Examples:\n  brigade bench {0}\n  brigade bench {0} --cases '{1}' --threads 1 --json -\n"
                  "  brigade bench {0} --rounds 20 --baseline before.json\n"
                  "Beside PyTorch in the same run: bench/beside_torch.py {0}",
                  suite.name, suite.example));
  command.add_option("--cases", given->filter, "only cases whose name matches this regular expression")
      .check(regular_expression());
  command.add_option("--threads", given->threads, "threads of the kernels (0: as OpenMP decides)")
      .check(number_from(0, 1024))
      .show_default();
  command.add_flag("--list", given->list, "print the names of the cases");
  given->options.add_to(command, {.dtypes = suite.dtypes, .rounds = "5-100", .seconds = 30, .plots = false});
  command
      .add_flag("--follow", given->follow,
                "time the cases named on standard input for --seconds each, one answer a line")
      .excludes("--list")
      .excludes("--json")
      .excludes("--csv");
  command.action([given, suite] {
#ifdef _OPENMP
    if (given->threads > 0) omp_set_num_threads(given->threads);
#endif
    if (given->follow) {
      follow(suite, given->options.limits().seconds);
      return 0;
    }
    given->options.report.begin();
    given->list ? list(suite, *given) : run(suite, *given);
    return 0;
  });
}

const AddBenchmark add_microbenchmarks(6, [](Command& bench) {
  const std::string dtypes = "float32,bfloat16,float16";
  const std::string beside = "Beside PyTorch in the same run: bench/beside_torch.py ";
  add_suite(bench, {"ops", "Operations at the sizes of models, forward and backward", "1024", dtypes, beside + "ops"});
  add_suite(bench,
            {"autograd", "What recording an operation and running its backward costs", "add", "", beside + "autograd"});
  add_suite(bench, {"optim", "Steps of optimizers over ten million parameters", "AdamW", "", beside + "optim"});
  add_suite(bench, {"amp", "What half types, autocast and loss scalers cost", "softmax", dtypes});
});

}  // namespace
}  // namespace brigade::lab
