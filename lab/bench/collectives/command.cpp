// brigade bench collectives: time, bandwidth, latency, overlap and correctness of the collectives of process
// groups; brigade bench allreduce runs all_reduce alone.
#include <brigade/lab/bench/benchmark.h>
#include <brigade/lab/bench/collectives/collective.h>
#include <brigade/lab/bench/collectives/tables.h>
#include <brigade/lab/bench/on_ranks.h>
#include <brigade/lab/hardware.h>
#include <brigade/lab/options.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>

namespace brigade::lab::bench {
namespace {

using nlohmann::json;

struct Arguments {
  BenchOptions options;
  std::vector<std::string> collectives;
  std::vector<std::string> memory{"group", "plain"}, place, in_flight{"1"};
  std::string family = "bandwidth", check = "every";
  int progress = 0, calls = 0;
  bool plain_loops = false;
};

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Runs before any rank starts. Throws ValueError.
void check_together(const Arguments& given) {
  if (given.plain_loops) {
    const std::vector<std::string>& backends = given.options.backends();
    if (!has(backends, "shm") && !has(backends, "threads") && !has(backends, "auto"))
      throw ValueError("--plain-loops stand beside shm and threads, got --backends {}", fmt::join(backends, ","));
    if (!has(given.collectives, "all_reduce") || given.family == "overlap" ||
        (!given.place.empty() && !has(given.place, "in")))
      throw ValueError("--plain-loops stand beside all_reduce, in place, in the families bandwidth and latency");
  }
  for (const DType dtype : given.options.dtypes()) {
    for (const dist::ReduceOp op : given.options.ops()) {
      if (op == dist::ReduceOp::Avg && !is_floating_point(dtype) && given.options.ops().size() == 1)
        throw ValueError("--op avg is for floating dtypes, got --dtype {}", name(dtype));
    }
  }
  // Each rank holds a pair of tensors in each kind of memory, and the copies that a group makes of plain ones.
  const std::vector<int64_t> sizes = given.options.sizes();
  const std::vector<int> ranks = given.options.ranks();
  const std::vector<int> in_flight = numbers_in<int>(given.in_flight);
  const int64_t calls = *std::max_element(in_flight.begin(), in_flight.end());
  const int64_t buffers = 2 * calls * static_cast<int64_t>(given.options.backends().size() + 1) *
                          static_cast<int64_t>(given.options.dtypes().size()) *
                          *std::max_element(ranks.begin(), ranks.end());
  const int64_t largest = *std::max_element(sizes.begin(), sizes.end());
  if (largest > memory_bytes() / buffers) {
    throw ValueError(
        "{} need about {} times as much memory with these ranks, backends, dtypes and calls in flight, and "
        "this machine has {} GiB",
        byte_size_in_words(largest), buffers, fmt::format("{:.1f}", static_cast<double>(memory_bytes()) / (1 << 30)));
  }
}

std::vector<Measured> measured_in(const RanksRun& run, int ranks) {
  std::vector<Measured> all;
  const json& first = run.rank(0);
  for (size_t row = 0; row < first.size(); ++row) {
    Measured one{std::make_shared<json>(first[row].at("key")), run.samples(row)};
    for (int rank = 0; rank < ranks; ++rank)
      one.wrong += run.rank(static_cast<size_t>(rank))[row].at("wrong").get<int64_t>();
    if (first[row].contains("compute_us")) {
      one.compute_us = run.samples(row, "compute_us");
      one.comm_us = run.samples(row, "comm_us");
    }
    all.push_back(std::move(one));
  }
  return all;
}

// {other backend: STAT of its time divided by the time of this one}, where both ran in the same rounds. The other
// backend's row uses the same kind of memory, or plain memory when it has no other.
json ratios_of(const Measured& one, const std::vector<Measured>& run) {
  json found = json::object();
  for (const bool same_memory : {true, false}) {
    for (const Measured& other : run) {
      json key = *other.key;
      const std::string backend = key.at("backend");
      if (one.key->at("backend") == backend || found.contains(backend)) continue;
      if (!same_memory && key.at("memory") == "plain") key["memory"] = one.key->at("memory");
      key["backend"] = one.key->at("backend");
      if (key == *one.key) found[backend] = to_json(spread_of(ratios(other.us, one.us)));
    }
  }
  return found;
}

// The time of a call divided by that of plain loops, where both ran in the same rounds.
std::optional<Spread> beside_plain_loops(const Measured& one, const std::vector<Measured>& run) {
  for (const Measured& other : run) {
    if (one.is_plain_loops() || !other.is_plain_loops()) continue;
    json key = *other.key;
    key.erase("plain_loops");
    if (key == *one.key) return spread_of(ratios(one.us, other.us));
  }
  return std::nullopt;
}

void add_rows(std::vector<Measured>& run, Arguments& given) {
  for (Measured& one : run) {
    const Spread time = spread_of(one.us);
    json found{{"time_us", to_json(time)},
               {"algbw_GBps", algbw_of(one)},
               {"busbw_GBps", busbw_of(one)},
               {"wrong", one.wrong},
               {"ratios", ratios_of(one, run)}};
    if (given.family == "overlap") {
      found["compute_us"] = to_json(spread_of(one.compute_us));
      found["comm_us"] = to_json(spread_of(one.comm_us));
      found["overlap_percent"] = to_json(spread_of(overlap_of(one)));
    }
    if (const auto ratio = beside_plain_loops(one, run)) found["x_plain_loops"] = to_json(*ratio);
    json key = *one.key;
    key["family"] = given.family == "overlap" ? "overlap" : "time";
    one.beside_baseline = given.options.report.add(key, found);
  }
}

// The lines that nccl-tests prints under its tables.
void print_summary(const std::vector<Measured>& all, int64_t wrong) {
  double sum = 0;
  int64_t count = 0;
  for (const Measured& one : all) {
    if (one.key->at("bytes") == 0 || one.is_plain_loops()) continue;
    sum += busbw_of(one);
    ++count;
  }
  std::cout << fmt::format("\n# Out of bounds values : {} {}\n", wrong, wrong == 0 ? "OK" : "FAILED");
  if (count > 0) std::cout << fmt::format("# Avg bus bandwidth    : {:.3f}\n", sum / static_cast<double>(count));
}

// Formats a line: what was called, and the ratio of its time to that of `than`.
std::string ratio_line(const json& key, const std::string& what, const json& ratio, const std::string& than) {
  return fmt::format(
      "#   {:<16}{:>12}  {:<10}{:<6}{:<13}{:>5} took {:.2f} [{:.2f} - {:.2f}] times as long as {}\n",
      key.at("collective").get<std::string>(), key.at("bytes").get<int64_t>(), key.at("dtype").get<std::string>(),
      key.at("memory").get<std::string>(), key.at("in_place").get<bool>() ? "in place" : "out of place", what,
      ratio.at("median").get<double>(), ratio.at("low").get<double>(), ratio.at("high").get<double>(), than);
}

// For each backend, prints how many times as long the backends listed after it took in the same rounds.
void print_ratios(const std::vector<Measured>& all, const std::vector<std::string>& backends) {
  const auto place = [&](const std::string& backend) {
    return std::find(backends.begin(), backends.end(), backend) - backends.begin();
  };
  std::string text;
  for (const Measured& one : all) {
    const json found = ratios_of(one, all);
    for (const auto& [other, ratio] : found.items()) {
      const std::string backend = one.key->at("backend");
      if (place(other) > place(backend)) text += ratio_line(*one.key, other, ratio, backend);
    }
  }
  if (!text.empty()) std::cout << "\n# backends in the same rounds: median ratio [quartiles]\n" << text;
}

void print_beside_plain_loops(const std::vector<Measured>& all) {
  std::string text;
  for (const Measured& one : all) {
    if (const auto ratio = beside_plain_loops(one, all))
      text += ratio_line(*one.key, one.key->at("backend"), to_json(*ratio), "plain loops");
  }
  if (!text.empty()) std::cout << "\n# beside plain loops in the same rounds: median ratio [quartiles]\n" << text;
}

int run(Arguments& given) {
  check_together(given);
  std::vector<std::string> place = given.place;
  if (place.empty())
    place = given.family == "bandwidth" ? std::vector<std::string>{"out", "in"} : std::vector<std::string>{"in"};
  json dtypes = json::array(), ops = json::array();
  for (const DType dtype : given.options.dtypes())
    dtypes.push_back(name(dtype));
  for (const dist::ReduceOp op : given.options.ops())
    ops.push_back(dist::name(op));
  const json arguments{{"collectives", given.collectives},
                       {"sizes", given.options.sizes()},
                       {"dtypes", dtypes},
                       {"ops", ops},
                       {"memory", given.memory},
                       {"place", place},
                       {"in_flight", numbers_in<int>(given.in_flight)},
                       {"family", given.family},
                       {"progress", given.progress},
                       {"calls", given.calls},
                       {"check", given.check},
                       {"plain_loops", given.plain_loops},
                       {"limits", to_json(given.options.limits())}};
  given.options.report.begin();
  // Compares with Gloo itself, without the header check that Brigade's group adds.
  setenv("BRIGADE_COLLECTIVE_CHECK", "0", 0);
  std::vector<Measured> all;
  for (const int ranks : given.options.ranks()) {
    for (const RanksRun& answers : run_on_ranks(kCollectivesJob, arguments, given.options.backends(), ranks)) {
      std::vector<Measured> measured = measured_in(answers, ranks);
      add_rows(measured, given);
      all.insert(all.end(), measured.begin(), measured.end());
    }
  }
  int64_t wrong = 0;
  for (const Measured& one : all)
    wrong += one.wrong;
  std::cout << tables(all, given.family);
  print_ratios(all, given.options.backends());
  print_beside_plain_loops(all);
  print_summary(all, wrong);
  given.options.report.write(given.options.report.wants_plot() ? plot_of(all, given.family) : Plot{});
  return wrong == 0 ? 0 : 1;
}

std::vector<std::string> names_of_all() {
  std::vector<std::string> names;
  for (const Collective& each : all_collectives())
    names.push_back(each.name);
  return names;
}

constexpr const char* kFooter =
    "Columns are those of nccl-tests (time of a call, algbw = size / time, busbw, wrong elements) and, with --family, of\n"
    "OSU's latency and overlap; docs/bench.md explains them.\n"
    "Examples:\n"
    "  brigade bench {0}\n"
    "  brigade bench {0} --sizes 4-1G:x4 --ranks 2,4 --backends shm --json {0}.json --plot {0}.svg\n"
    "  brigade bench {0} --dtypes float32,bfloat16 --ops sum,avg --memory plain --baseline {0}.json\n"
    "  brigade bench allreduce --plain-loops                   how far from what memory allows\n"
    "  brigade bench {0} --family latency --sizes 4-64K        as osu_allreduce and its kin\n"
    "  brigade bench {0} --family overlap --progress 16        as osu_iallreduce and its kin";

void add_command(Command& bench, const std::string& name, const std::string& about, const std::string& backends,
                 bool all) {
  auto given = std::make_shared<Arguments>();
  given->collectives = all ? names_of_all() : std::vector<std::string>{"all_reduce"};
  Command command = bench.add_command(name, about);
  command.footer(fmt::format(fmt::runtime(kFooter), name));
  if (all) {
    command.add_option("--collectives", given->collectives, "some of " + collective_names() + " [all]")
        .separated_by(',')
        .check(one_of(names_of_all()));
  }
  command.add_option("--family", given->family, "which figures")
      .check(one_of({"bandwidth", "latency", "overlap"}))
      .show_default();
  given->options.add_to(command,
                        {.sizes = "4-64M:x4", .dtypes = "float32", .ops = "sum", .ranks = "2", .backends = backends});
  command.add_option("--memory", given->memory, "tensors allocated by the group, and others [group,plain]")
      .separated_by(',')
      .check(one_of({"group", "plain"}));
  command.add_option("--place", given->place, "out of place, in place [both; latency, overlap: in]")
      .separated_by(',')
      .check(one_of({"out", "in"}));
  command.add_option("--in-flight", given->in_flight, "calls that are posted before the first wait [1]")
      .separated_by(',')
      .check(whole_number_from(1, 64));
  command.add_option("--progress", given->progress, "overlap: calls of progress() during the computation")
      .check(number_from(0, 1'000'000))
      .show_default();
  command.add_option("--calls", given->calls, "calls in a round, whose median is its time (0: 200 to 1, by size)")
      .check(number_from(0, 1'000'000))
      .show_default();
  command.add_option("--check", given->check, "compare results with exact values in every round, or in the first")
      .check(one_of({"every", "first"}))
      .show_default();
  command.add_flag("--plain-loops", given->plain_loops,
                   "beside all_reduce in place over shm and threads: what the same loops take without the group");
  command.action([given] { return run(*given); });
}

const AddBenchmark add(1, [](Command& bench) {
  add_command(bench, "collectives", "All collectives: time, bandwidth, latency, overlap (as nccl-tests and OSU)",
              "shm,gloo", true);
  add_command(bench, "allreduce", "The same for all_reduce alone", "shm,gloo", false);
});

}  // namespace
}  // namespace brigade::lab::bench
