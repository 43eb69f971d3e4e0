// brigade bench allreduce: time, bandwidth and correctness of all_reduce for each backend,
// interleaved in one run of the same processes.
#include <brigade/lab/bench/allreduce_job.h>
#include <brigade/lab/bench/benchmark.h>
#include <brigade/lab/bench/byte_sizes.h>
#include <brigade/lab/hardware.h>
#include <brigade/lab/json_output.h>
#include <brigade/lab/options.h>
#include <brigade/lab/rank_job.h>
#include <brigade/lab/results.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>

namespace brigade::lab {

namespace {

using nlohmann::json;

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
    throw ValueError("--op avg is for floating dtypes, got --dtype {}", given.dtype);
  // Each way has a buffer on each rank, and the group's own memory beside it.
  const int64_t memory = memory_bytes();
  const int64_t buffers = static_cast<int64_t>(given.backends.size()) * 4 * given.ranks;
  const int64_t largest = sizes.empty() ? 0 : *std::max_element(sizes.begin(), sizes.end());
  if (largest > memory / buffers) {
    throw ValueError("{} on {} ranks need about {} times as much memory, and this machine has {} GiB",
                     byte_size_in_words(largest), given.ranks, buffers,
                     fmt::format("{:.1f}", static_cast<double>(memory) / (1 << 30)));
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
    const std::string backend = row.at("backend");
    const bool in_place = row.at("in_place");
    std::cout << fmt::format(
        "{:>10} {:>18} {:>12.2f} {:>22} {:>12.2f} {:>12.2f} {:>7} {:>16}\n", byte_size_in_words(bytes),
        backend + (in_place ? " in place" : " staged"), stat.at("median").get<double>(),
        fmt::format("[{:.2f} - {:.2f}]", stat.at("min").get<double>(), stat.at("max").get<double>()), algbw, busbw,
        row.at("wrong").get<int64_t>(), against);
    wrong += row.at("wrong").get<int64_t>();
    given.results.add({{"backend", backend},
                       {"ranks", given.ranks},
                       {"dtype", given.dtype},
                       {"op", given.op},
                       {"bytes", bytes},
                       {"in_place", in_place},
                       {"time_us", stat},
                       {"algbw_GBps", algbw},
                       {"busbw_GBps", busbw},
                       {"wrong", row.at("wrong")}});
  }
  return wrong;
}

void add_command(Command& bench) {
  auto given = std::make_shared<Arguments>();
  Command command =
      bench.add_command("allreduce", "all_reduce: time and bandwidth by size, backends side by side in one run");
  command.footer(
      "Examples:\n  brigade bench allreduce\n  brigade bench allreduce --backend shm --ranks 4 --sizes 1M,64M --json "
      "-\n"
      "  brigade bench allreduce --sizes 4K-64M --factor 4 --dtype bfloat16 --op avg --csv allreduce.csv");
  command.add_option("--backend", given->backends, "some of " + backends_in_words() + ", separated by commas")
      .separated_by(',');
  command
      .add_option("--sizes", given->sizes,
                  "bytes with K, M or G (powers of 1024), and ranges (4K-64M), separated by commas")
      .separated_by(',');
  command.add_option("--factor", given->factor, "in a range each size is so many times the one before")
      .check(number_from(2, 1 << 30))
      .show_default();
  command.add_option("--ranks", given->ranks, "number of ranks").check(number_from(1, 64)).show_default();
  command.add_option("--rounds", given->rounds, "counted rounds, after one to warm up")
      .check(number_from(1, 1000))
      .show_default();
  command.add_option("--dtype", given->dtype, "element type").check(dtype_name()).show_default();
  command.add_option("--op", given->op, "what the ranks reduce by").check(one_of(reduce_operations())).show_default();
  given->results.add_options(command);
  command.action([given] {
    const json arguments{{"backends", given->backends},
                         {"sizes", checked_sizes(*given)},
                         {"rounds", given->rounds},
                         {"dtype", given->dtype},
                         {"op", given->op}};
    given->results.begin();
    // The peer is Gloo itself, without the comparison of headers that our group adds.
    setenv("BRIGADE_COLLECTIVE_CHECK", "0", 0);
    const RankJobOutcome outcome = run_rank_job(kAllreduceJob, arguments.dump(), given->backends.front(), given->ranks);
    require_ok(outcome);
    const int64_t wrong = tell(json::parse(outcome.ranks.at(0).text), *given);
    given->results.write();
    return wrong == 0 ? 0 : 1;
  });
}

const AddBenchmark add_allreduce(&add_command);

}  // namespace

}  // namespace brigade::lab
