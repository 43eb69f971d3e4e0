// brigade bench allreduce: time, bandwidth and correctness of all_reduce for each backend, interleaved in one run of
// the same processes.
#include <brigade/core/factory.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/lab/bench/allreduce_values.h>
#include <brigade/lab/bench/benchmark.h>
#include <brigade/lab/bench/byte_sizes.h>
#include <brigade/lab/json_output.h>
#include <brigade/lab/options.h>
#include <brigade/lab/rank_job.h>
#include <brigade/lab/results.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <optional>

#include <unistd.h>

namespace brigade::lab {

namespace {

using nlohmann::json;

// One way of reducing: a backend, in place (memory of the group) or with the group's own copies.
struct Way {
  std::string backend;
  bool in_place;
  std::string name() const { return backend + (in_place ? " in place" : " staged"); }
};

constexpr dist::ReduceOp kOperations[] = {dist::ReduceOp::Sum, dist::ReduceOp::Avg, dist::ReduceOp::Max,
                                          dist::ReduceOp::Min};

std::optional<dist::ReduceOp> operation_of(const std::string& text) {
  for (const dist::ReduceOp op : kOperations) {
    if (text == dist::name(op)) return op;
  }
  return std::nullopt;
}

// Repetitions that keep a size's share of a round short.
int repetitions(int64_t bytes) { return bytes <= 64 << 10 ? 200 : bytes <= 1 << 20 ? 40 : bytes <= 16 << 20 ? 8 : 3; }

// On one rank: all ways over all sizes, interleaved in rounds. The rank's own group is one of them; gloo is made beside
// it.
std::string allreduce_job(const dist::ProcessGroupPtr& group, const std::string& arguments) {
  using Clock = std::chrono::steady_clock;
  const json given = json::parse(arguments);
  const DType dtype = dtype_from_name(given.at("dtype"));
  const dist::CollectiveOptions options{.op = operation_of(given.at("op")).value()};
  std::map<std::string, dist::ProcessGroupPtr> groups{{group->backend(), group}};
  std::vector<Way> ways;
  for (const std::string backend : given.at("backends")) {
    if (!groups.contains(backend)) {
      dist::InitOptions beside;
      beside.backend = backend;
      groups[backend] = dist::init_process_group(beside);
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
        fill_contribution(buffer, group->rank(), group->size());
        g.all_reduce(buffer, options)->wait();
        wrong[w] += count_wrong(buffer, options.op, group->size());
        kernels::fill(buffer, 0.0);  // zeros stay zeros, however often they are reduced
        g.barrier();
        const int times_to_run = repetitions(bytes);
        // The median of single calls: a stall of the scheduler (milliseconds) in one of them must not stand for all.
        std::vector<double> calls;
        for (int i = 0; i < times_to_run; ++i) {
          const auto begin = Clock::now();
          g.all_reduce(buffer, options)->wait();
          calls.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
        }
        if (round > 0) times[w].push_back(median(calls));  // the first round warms up
      }
    }
    // Of all ranks, not of this one.
    const Tensor all_wrong = from_values(std::span<const int64_t>(wrong), {static_cast<int64_t>(wrong.size())});
    group->all_reduce(all_wrong)->wait();
    for (size_t w = 0; w < ways.size(); ++w) {
      rows.push_back({{"backend", ways[w].backend},
                      {"in_place", ways[w].in_place},
                      {"bytes", count * static_cast<int64_t>(itemsize(dtype))},
                      {"times", times[w]},
                      {"wrong", all_wrong.data_ptr<int64_t>()[w]}});
    }
  }
  return rows.dump();
}

const AddRankJob add_allreduce_job("bench-allreduce", &allreduce_job);

// Median of the ratios of the same rounds.
double ratio(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    ratios.push_back(a[i] / b[i]);
  return median(ratios);
}

struct Arguments {
  std::vector<std::string> backends{"shm", "gloo"};
  std::vector<std::string> sizes{"4K", "64K", "256K", "1M", "4M", "16M", "64M"};
  int64_t factor = 2;
  int ranks = 2;
  int rounds = 5;
  std::string dtype = "float32";
  std::string op = "sum";
  Results results;
};

// Before any rank starts: throws ValueError.
std::vector<int64_t> checked_sizes(const Arguments& given) {
  const std::vector<int64_t> sizes = parse_byte_sizes(given.sizes, given.factor);
  for (const std::string& backend : given.backends)
    check_backend(backend);
  if (given.backends.size() > 1 &&
      std::find(given.backends.begin(), given.backends.end(), "threads") != given.backends.end()) {
    throw ValueError(
        "threads are ranks of one process and cannot be run beside shm or gloo; give --backend threads alone");
  }
  if (given.op == dist::name(dist::ReduceOp::Avg) && !is_floating_point(dtype_from_name(given.dtype)))
    throw ValueError("--op avg is for floating dtypes, got --dtype " + given.dtype);
  // Each way has a buffer on each rank, and the group's own memory beside it.
  const int64_t memory = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
  const int64_t buffers = static_cast<int64_t>(given.backends.size()) * 4 * given.ranks;
  const int64_t largest = sizes.empty() ? 0 : *std::max_element(sizes.begin(), sizes.end());
  if (largest > memory / buffers) {
    throw ValueError(fmt::format("{} on {} ranks need about {} times as much memory, and this machine has {:.1f} GiB",
                                 byte_size_in_words(largest), given.ranks, buffers,
                                 static_cast<double>(memory) / (1 << 30)));
  }
  return sizes;
}

// Prints the table and adds the rows; returns the number of wrong elements.
int64_t tell(const json& rows, Arguments& given) {
  std::cout << fmt::format("all_reduce({}) of {} on {} ranks; medians of {} interleaved rounds, rank 0\n", given.op,
                           given.dtype, given.ranks, given.rounds);
  std::cout << fmt::format("{:>10} {:>18} {:>12} {:>22} {:>12} {:>12} {:>7} {:>16}\n", "size", "way", "time us",
                           "[min - max]", "algbw GB/s", "busbw GB/s", "wrong", "gloo / this way");
  int64_t wrong = 0;
  for (const json& row : rows) {
    const auto times = row.at("times").get<std::vector<double>>();
    const auto bytes = row.at("bytes").get<int64_t>();
    const json stat = statistics(times);
    const double algbw = static_cast<double>(bytes) / stat.at("median").get<double>() / 1e3;
    const double busbw = algbw * 2 * (given.ranks - 1) / given.ranks;
    std::string against;
    for (const json& other : rows) {
      if (other.at("backend") == "gloo" && other.at("bytes") == bytes && row.at("backend") != "gloo")
        against = fmt::format("{:.1f}x", ratio(other.at("times").get<std::vector<double>>(), times));
    }
    const Way way{row.at("backend"), row.at("in_place")};
    std::cout << fmt::format(
        "{:>10} {:>18} {:>12.2f} {:>22} {:>12.2f} {:>12.2f} {:>7} {:>16}\n", byte_size_in_words(bytes), way.name(),
        stat.at("median").get<double>(),
        fmt::format("[{:.2f} - {:.2f}]", stat.at("min").get<double>(), stat.at("max").get<double>()), algbw, busbw,
        row.at("wrong").get<int64_t>(), against);
    wrong += row.at("wrong").get<int64_t>();
    given.results.add({{"backend", way.backend},
                       {"ranks", given.ranks},
                       {"dtype", given.dtype},
                       {"op", given.op},
                       {"bytes", bytes},
                       {"in_place", way.in_place},
                       {"time_us", stat},
                       {"algbw_GBps", algbw},
                       {"busbw_GBps", busbw},
                       {"wrong", row.at("wrong")}});
  }
  return wrong;
}

void add_command(CLI::App& bench, int& exit_code) {
  auto given = std::make_shared<Arguments>();
  CLI::App* command =
      bench.add_subcommand("allreduce", "all_reduce: time and bandwidth by size, backends side by side in one run");
  command->footer(
      "Examples:\n  brigade bench allreduce\n  brigade bench allreduce --backend shm --ranks 4 --sizes 1M,64M --json "
      "-\n"
      "  brigade bench allreduce --sizes 4K-64M --factor 4 --dtype bfloat16 --op avg --csv allreduce.csv");
  command->add_option("--backend", given->backends, "backends, separated by commas: shm,gloo or threads")
      ->delimiter(',');
  command
      ->add_option("--sizes", given->sizes,
                   "bytes with K, M or G (powers of 1024), and ranges (4K-64M), separated by commas")
      ->delimiter(',');
  command->add_option("--factor", given->factor, "in a range each size is so many times the one before")
      ->check(CLI::Range(int64_t{2}, int64_t{1} << 30))
      ->capture_default_str();
  command->add_option("--ranks", given->ranks, "number of ranks")->check(CLI::Range(1, 64))->capture_default_str();
  command->add_option("--rounds", given->rounds, "counted rounds, after one to warm up")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--dtype", given->dtype, "element type")->check(dtype_name())->capture_default_str();
  std::vector<std::string> operations;
  for (const dist::ReduceOp op : kOperations)
    operations.push_back(dist::name(op));
  command->add_option("--op", given->op, "what the ranks reduce by")
      ->check(CLI::IsMember(operations))
      ->capture_default_str();
  given->results.add_options(*command);
  command->callback([given, &exit_code] {
    const json arguments{{"backends", given->backends},
                         {"sizes", checked_sizes(*given)},
                         {"rounds", given->rounds},
                         {"dtype", given->dtype},
                         {"op", given->op}};
    given->results.begin();
    // The peer is Gloo itself, without the comparison of headers that our group adds.
    setenv("BRIGADE_COLLECTIVE_CHECK", "0", 0);
    const RankJobOutcome outcome =
        run_rank_job("bench-allreduce", arguments.dump(), given->backends.front(), given->ranks);
    require_ok(outcome);
    const int64_t wrong = tell(json::parse(outcome.ranks.at(0).text), *given);
    given->results.write();
    exit_code = wrong == 0 ? 0 : 1;
  });
}

const AddBenchmark add_allreduce(&add_command);

}  // namespace

}  // namespace brigade::lab
