// brigade bench bucket: the cost of a gradient bucket, term by term, over its size; the cheapest size; and how much
// of the communication hides behind a backward, over a link of chosen speed.
#include <brigade/core/error.h>
#include <brigade/lab/bench/benchmark.h>
#include <brigade/lab/bench/bucket/tables.h>
#include <brigade/lab/bench/bucket/terms.h>
#include <brigade/lab/bench/on_ranks.h>
#include <brigade/lab/bench/simulated_link.h>
#include <brigade/lab/hardware.h>
#include <brigade/lab/options.h>

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
  BenchOptions options;
  std::vector<std::string> parameters{"1", "100", "10000"};
  std::vector<std::string> hooks{"none"};
  std::vector<std::string> gradients{"views", "copies"};
  bool pin = false;
  std::string link = "100us,1GB/s";
  std::string total = "16M";
  double compute_ms = 30;
  int overlap_parameters = 1024;
  bool only_overlap = false, only_terms = false;
};

// How many copies of the largest bucket a rank holds at once: given gradients, parameters, gradients and buckets,
// for the stand-alone terms and for the backward.
constexpr int64_t kCopiesOfABucket = 9;

void check_memory(const Arguments& given, int64_t largest) {
  const int ranks = std::ranges::max(given.options.ranks());
  const auto ways = static_cast<int64_t>(given.hooks.size() * given.gradients.size() * given.options.dtypes().size() *
                                         given.options.backends().size());
  const int64_t needed = kCopiesOfABucket * ways * ranks;
  if (largest <= memory_bytes() / needed) return;
  throw ValueError(
      "buckets of {} in {} ways on {} ranks need about {} times as much memory, and this machine has "
      "{} GiB; give fewer ways or smaller --sizes",
      byte_size_in_words(largest), ways, ranks, needed, memory_bytes() >> 30);
}

// Groups the cases by size and number of parameters. Prints those that are left out.
json groups_of_cases(const Arguments& given) {
  json groups = json::array();
  for (const auto parameters : numbers_in<int64_t>(given.parameters)) {
    for (const int64_t bytes : given.options.sizes()) {
      json cases = json::array();
      for (const DType dtype : given.options.dtypes()) {
        if (numel_of_each(bytes, parameters, dtype) < 1) {
          std::cout << fmt::format("left out: {} parameters of {} do not fit into {}\n", parameters, name(dtype),
                                   byte_size_in_words(bytes));
          continue;
        }
        for (const std::string& hook : given.hooks) {
          for (const std::string& gradients : given.gradients) {
            cases.push_back({{"bytes", bytes},
                             {"parameters", parameters},
                             {"dtype", name(dtype)},
                             {"hook", hook},
                             {"gradients", gradients}});
          }
        }
      }
      if (!cases.empty()) groups.push_back(std::move(cases));
    }
  }
  return groups;
}

// Runs before any rank starts. Throws ValueError.
void check(const Arguments& given) {
  for (const std::string& hook : given.hooks)
    make_hook(hook);
  for (const std::string& gradients : given.gradients)
    find_placing(gradients);
  for (const DType dtype : given.options.dtypes()) {
    if (!is_floating_point(dtype)) throw ValueError("--dtypes: gradients are floating, got {}", name(dtype));
  }
  const int64_t total = parse_byte_size(given.total);
  if (numel_of_each(total, given.overlap_parameters, DType::Float64) < 1)
    throw ValueError("--total: {} parameters do not fit into {}", given.overlap_parameters, byte_size_in_words(total));
  if (given.only_overlap && given.only_terms) throw ValueError("--only-terms and --only-overlap leave nothing to do");
  if (!given.only_overlap) check_memory(given, std::ranges::max(given.options.sizes()));
}

void run_terms(Arguments& given, int ranks, std::vector<BucketRow>& all) {
  const json arguments{
      {"groups", groups_of_cases(given)}, {"limits", to_json(given.options.limits())}, {"pin", given.pin}};
  if (arguments.at("groups").empty()) throw ValueError("no size is large enough for one of the numbers of parameters");
  for (const RanksRun& run : run_on_ranks(kBucketTermsJob, arguments, given.options.backends(), ranks)) {
    std::vector<BucketRow> rows = bucket_rows(run, ranks);
    print_terms(rows, given.options.report, std::cout);
    print_optima(rows, std::cout);
    std::ranges::move(rows, std::back_inserter(all));
  }
}

// The caps that cut the total into more than one bucket, and one that does not.
std::vector<int64_t> caps_of(const Arguments& given) {
  const int64_t total = parse_byte_size(given.total);
  std::vector<int64_t> caps;
  for (const int64_t size : given.options.sizes()) {
    if (size < total) caps.push_back(size);
  }
  caps.push_back(total);
  return caps;
}

void run_overlap(Arguments& given, int ranks) {
  if (!are_on_one_host()) {
    std::cout << "\nThe overlap over a simulated link is left out: its ranks have to be on one host.\n";
    return;
  }
  const LinkSpeed link = parse_link(given.link);
  // These backends support a simulated link.
  const std::string backend = joined_ranks() > 0 ? "shm" : "threads";
  for (const DType dtype : given.options.dtypes()) {
    const json arguments{{"caps", caps_of(given)},
                         {"bytes", parse_byte_size(given.total)},
                         {"parameters", given.overlap_parameters},
                         {"dtype", name(dtype)},
                         {"compute_ms", given.compute_ms},
                         {"link", given.link},
                         {"limits", to_json(given.options.limits())}};
    std::cout << fmt::format(
        "\n{} of {} gradients in {} parameters, a backward of {:g} ms (asleep), a link of {}, {} "
        "ranks ({})\n",
        byte_size_in_words(parse_byte_size(given.total)), name(dtype), given.overlap_parameters, given.compute_ms,
        in_words(link), ranks, backend);
    for (const RanksRun& run : run_on_ranks(kBucketOverlapJob, arguments, {backend}, ranks))
      print_overlap(overlap_rows(run, given.compute_ms, link),
                    {{"what", "overlap"},
                     {"ranks", ranks},
                     {"dtype", name(dtype)},
                     {"bytes", parse_byte_size(given.total)},
                     {"parameters", given.overlap_parameters},
                     {"compute_ms", given.compute_ms},
                     {"link", given.link}},
                    given.options.report, std::cout);
  }
}

void run(Arguments& given) {
  check(given);
  given.options.report.begin();
  std::vector<BucketRow> rows;
  for (const int ranks : given.options.ranks()) {
    if (!given.only_overlap) run_terms(given, ranks, rows);
    if (!given.only_terms) run_overlap(given, ranks);
  }
  given.options.report.write(given.options.report.wants_plot() ? terms_plot(rows) : Plot{});
}

void add_command(Command& bench) {
  auto given = std::make_shared<Arguments>();
  Command command = bench.add_command(
      "bucket", "A bucket of gradients: what flatten, flags, launch, reduce and copy-out cost, and which size is best");
  command.footer(
      "Terms: flatten (gradients into their slots), numbers (sums of squares for the diagnosis), flags (who used what), "
      "launch (the call),\nreduce (until the result is there), copy-out; each alone, their sum, and what DDP adds to a "
      "backward that only writes gradients\n(together).\nGradients: views (written into the bucket), handed (one copy in), "
      "copies (in and out).\nHooks: none, allreduce, fp16_compress, bf16_compress, powersgd, noop.\n\n"
      "Examples:\n  brigade bench bucket\n  brigade bench bucket --sizes 1M --parameters 1,10,100,1000,10000 "
      "--gradients views,handed,copies --only-terms\n  brigade bench bucket --only-overlap --link 50us,1GB/s --compute 50 "
      "--total 100M\n  brigade bench bucket --hooks none,fp16_compress --backends shm,gloo --json buckets.json");
  given->options.add_to(command, {.sizes = "64K-256M:x4",
                                  .dtypes = "float32",
                                  .ranks = "2",
                                  .backends = "shm",
                                  .rounds = "5-40",
                                  .noise_percent = 5,
                                  .seconds = 4,
                                  .warm_up = 1,
                                  .measure = "time_us"});
  command.add_option("--parameters", given->parameters, "into how many parameters of one size a bucket is divided")
      .separated_by(',')
      .check(whole_number_from(1, 1'000'000))
      .show_default();
  command.add_option("--hooks", given->hooks, "communication hooks").separated_by(',').show_default();
  command.add_option("--gradients", given->gradients, "how they come to the bucket: views, handed, copies")
      .separated_by(',')
      .show_default();
  add_pin(command, given->pin);
  add_link(command, given->link, "of the overlap, a link that takes no processor's time").show_default();
  command.add_option("--total", given->total, "of the overlap: bytes of all gradients").show_default();
  command.add_option("--compute", given->compute_ms, "of the overlap: how long backward takes, ms")
      .check(positive_number())
      .show_default();
  command.add_option("--overlap-parameters", given->overlap_parameters, "of the overlap: number of parameters")
      .check(number_from(1, 1'000'000))
      .show_default();
  command.add_flag("--only-terms", given->only_terms, "without the overlap");
  command.add_flag("--only-overlap", given->only_overlap, "without the terms");
  command.action([given] {
    run(*given);
    return 0;
  });
}

const AddBenchmark add(2, &add_command);

}  // namespace
}  // namespace brigade::lab::bench
