// brigade bench allreduce: time, bandwidth and correctness of all_reduce for each backend, interleaved in one run of
// the same processes.
#include <brigade/lab/commands/bench_allreduce.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/lab/json_output.h>
#include <brigade/lab/rank_job.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cmath>
#include <iostream>
#include <map>
#include <memory>

namespace brigade::lab {

namespace {

using nlohmann::json;

// One way of reducing: a backend, in place (memory of the group) or with the group's own copies.
struct Way {
  std::string backend;
  bool in_place;
  std::string name() const { return backend + (in_place ? " in place" : " staged"); }
};

// Repetitions that keep a size's share of a round short.
int repetitions(int64_t bytes) { return bytes <= 64 << 10 ? 200 : bytes <= 1 << 20 ? 40 : bytes <= 16 << 20 ? 8 : 3; }

// Every rank contributes rank + 1: the sum is known. Returns the number of wrong elements.
int64_t count_wrong(const Tensor& tensor, int ranks) {
  int64_t wrong = 0;
  const double expected = ranks * (ranks + 1) / 2.0;
  for (int64_t i = 0; i < tensor.numel(); i += std::max<int64_t>(1, tensor.numel() / 1021))
    wrong += detail::element_as_double(tensor, i) != expected;
  return wrong + (tensor.numel() > 0 && detail::element_as_double(tensor, tensor.numel() - 1) != expected);
}

// On one rank: all ways over all sizes, interleaved in rounds. The rank's own group is one of them; gloo is made beside
// it.
std::string allreduce_job(const dist::ProcessGroupPtr& group, const std::string& arguments) {
  using Clock = std::chrono::steady_clock;
  const json given = json::parse(arguments);
  const DType dtype = dtype_from_name(given.at("dtype"));
  std::map<std::string, dist::ProcessGroupPtr> groups{{group->backend(), group}};
  std::vector<Way> ways;
  for (const std::string backend : given.at("backends")) {
    if (!groups.contains(backend)) {
      dist::InitOptions options;
      options.backend = backend;
      groups[backend] = dist::init_process_group(options);
    }
    ways.push_back({backend, true});
    if (backend != "gloo") ways.push_back({backend, false});
  }
  json rows = json::array();
  for (const int64_t bytes : given.at("sizes")) {
    const int64_t count = std::max<int64_t>(bytes / static_cast<int64_t>(itemsize(dtype)), 1);
    std::vector<std::vector<double>> times(ways.size());
    std::vector<int64_t> wrong(ways.size());
    std::vector<Tensor> buffers;
    for (const Way& way : ways)
      buffers.push_back(way.in_place ? groups[way.backend]->allocate(count, dtype) : empty({count}, dtype));
    for (int round = 0; round < given.at("rounds").get<int>() + 1; ++round) {
      for (size_t w = 0; w < ways.size(); ++w) {
        dist::ProcessGroup& g = *groups[ways[w].backend];
        const Tensor& buffer = buffers[w];
        kernels::fill(buffer, group->rank() + 1);
        g.all_reduce(buffer)->wait();
        wrong[w] += count_wrong(buffer, group->size());
        kernels::fill(buffer, 0.0);  // zeros stay zeros, however often they are summed
        g.barrier();
        const int times_to_run = repetitions(bytes);
        // The median of single calls: a stall of the scheduler (milliseconds) in one of them must not stand for all.
        std::vector<double> calls;
        for (int i = 0; i < times_to_run; ++i) {
          const auto begin = Clock::now();
          g.all_reduce(buffer)->wait();
          calls.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
        }
        if (round > 0) times[w].push_back(median(calls));  // the first round warms up
      }
    }
    for (size_t w = 0; w < ways.size(); ++w) {
      rows.push_back({{"backend", ways[w].backend},
                      {"in_place", ways[w].in_place},
                      {"bytes", bytes},
                      {"times", times[w]},
                      {"wrong", wrong[w]}});
    }
  }
  return rows.dump();
}

const AddRankJob add_allreduce_job("bench-allreduce", &allreduce_job);

// "64KiB" -> 65536
int64_t parse_size(const std::string& text) {
  size_t used = 0;
  int64_t value = 0;
  try {
    value = std::stoll(text, &used);
  } catch (const std::exception&) {
  }
  const std::string unit = text.substr(used);
  const int64_t factor = unit.empty() || unit == "B" ? 1 : unit == "KiB" ? 1 << 10 : unit == "MiB" ? 1 << 20 : 0;
  if (used == 0 || value < 1 || factor == 0)
    throw ValueError("a size is a number with B, KiB or MiB, got '" + text + "'");
  return value * factor;
}

std::string size_in_words(int64_t bytes) {
  if (bytes % (1 << 20) == 0) return fmt::format("{} MiB", bytes >> 20);
  if (bytes % (1 << 10) == 0) return fmt::format("{} KiB", bytes >> 10);
  return fmt::format("{} B", bytes);
}

// Median of the ratios of the same rounds.
double ratio(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    ratios.push_back(a[i] / b[i]);
  return median(ratios);
}

}  // namespace

void add_bench_allreduce(CLI::App& bench, int& exit_code) {
  struct Arguments {
    std::vector<std::string> backends{"shm", "gloo"};
    std::vector<std::string> sizes{"4KiB", "64KiB", "256KiB", "1MiB", "4MiB", "16MiB", "64MiB"};
    int ranks = 2;
    int rounds = 5;
    std::string dtype = "float32";
    std::string json_file;
  };
  auto given = std::make_shared<Arguments>();
  CLI::App* command =
      bench.add_subcommand("allreduce", "all_reduce: time and bandwidth by size, backends side by side in one run");
  command->footer(
      "Examples:\n  brigade bench allreduce\n  brigade bench allreduce --backend shm --ranks 4 --sizes 1MiB,64MiB "
      "--json -");
  command->add_option("--backend", given->backends, "backends, separated by commas: shm,gloo or threads")
      ->delimiter(',');
  command->add_option("--sizes", given->sizes, "sizes, separated by commas")->delimiter(',');
  command->add_option("--ranks", given->ranks, "number of ranks")->check(CLI::Range(1, 64))->capture_default_str();
  command->add_option("--rounds", given->rounds, "counted rounds, after one to warm up")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--dtype", given->dtype, "element type")->capture_default_str();
  command->add_option("--json", given->json_file, "write the results as JSON to a file (- for standard output)");
  command->callback([given, &exit_code] {
    std::vector<int64_t> sizes;
    for (const std::string& size : given->sizes)
      sizes.push_back(parse_size(size));
    for (const std::string& backend : given->backends)
      check_backend(backend);
    if (given->backends.size() > 1 &&
        std::find(given->backends.begin(), given->backends.end(), "threads") != given->backends.end()) {
      throw ValueError(
          "threads are ranks of one process and cannot be run beside shm or gloo; give --backend threads alone");
    }
    dtype_from_name(given->dtype);
    const json arguments{
        {"backends", given->backends}, {"sizes", sizes}, {"rounds", given->rounds}, {"dtype", given->dtype}};
    // The peer is Gloo itself, without the comparison of headers that our group adds.
    setenv("BRIGADE_COLLECTIVE_CHECK", "0", 0);
    const RankJobOutcome outcome =
        run_rank_job("bench-allreduce", arguments.dump(), given->backends.front(), given->ranks);
    for (size_t rank = 0; rank < outcome.ranks.size(); ++rank) {
      if (!outcome.ranks[rank].ok) throw DistError(fmt::format("rank {}: {}", rank, outcome.ranks[rank].text));
    }
    json output = json_envelope(command_line());
    check_writable(given->json_file);
    std::ostream& table = given->json_file == "-" ? std::cerr : std::cout;
    table << fmt::format("all_reduce(sum) of {} on {} ranks; medians of {} interleaved rounds, rank 0\n", given->dtype,
                         given->ranks, given->rounds);
    table << fmt::format("{:>10} {:>18} {:>12} {:>22} {:>12} {:>12} {:>7} {:>16}\n", "size", "way", "time us",
                         "[min - max]", "algbw GB/s", "busbw GB/s", "wrong", "gloo / this way");
    int64_t wrong = 0;
    const json rows = json::parse(outcome.ranks.at(0).text);
    for (const json& row : rows) {
      const auto times = row.at("times").get<std::vector<double>>();
      const auto bytes = row.at("bytes").get<int64_t>();
      const json stat = statistics(times);
      const double algbw = static_cast<double>(bytes) / stat.at("median").get<double>() / 1e3;
      const double busbw = algbw * 2 * (given->ranks - 1) / given->ranks;
      std::string against;
      for (const json& other : rows) {
        if (other.at("backend") == "gloo" && other.at("bytes") == bytes && row.at("backend") != "gloo")
          against = fmt::format("{:.1f}x", ratio(other.at("times").get<std::vector<double>>(), times));
      }
      const Way way{row.at("backend"), row.at("in_place")};
      table << fmt::format("{:>10} {:>18} {:>12.2f} {:>22} {:>12.2f} {:>12.2f} {:>7} {:>16}\n", size_in_words(bytes),
                           way.name(), stat.at("median").get<double>(),
                           fmt::format("[{:.2f} - {:.2f}]", stat.at("min").get<double>(), stat.at("max").get<double>()),
                           algbw, busbw, row.at("wrong").get<int64_t>(), against);
      wrong += row.at("wrong").get<int64_t>();
      output["results"].push_back({{"backend", way.backend},
                                   {"ranks", given->ranks},
                                   {"dtype", given->dtype},
                                   {"bytes", bytes},
                                   {"in_place", way.in_place},
                                   {"time_us", stat},
                                   {"algbw_GBps", algbw},
                                   {"busbw_GBps", busbw},
                                   {"wrong", row.at("wrong")}});
    }
    if (!given->json_file.empty()) write_json(given->json_file, output);
    exit_code = wrong == 0 ? 0 : 1;
  });
}

}  // namespace brigade::lab
