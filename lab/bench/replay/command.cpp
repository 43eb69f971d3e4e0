// brigade bench replay: repeats the collectives of a recorded training run, with its gaps: over another backend, a
// slower link, in larger buckets.
#include <brigade/core/error.h>
#include <brigade/lab/bench/benchmark.h>
#include <brigade/lab/bench/on_ranks.h>
#include <brigade/lab/bench/replay/plan.h>
#include <brigade/lab/bench/replay/player.h>
#include <brigade/lab/bench/simulated_link.h>
#include <brigade/lab/bench/spread.h>
#include <brigade/lab/trace_file.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

namespace brigade::lab::bench {
namespace {

using nlohmann::json;

struct Arguments {
  BenchOptions options;
  std::string trace;
  std::vector<std::string> caps;
  std::string link;
};

// The buckets as recorded, or recut to a cap.
struct Variant {
  int64_t cap = 0;  // 0: as recorded
  ReplayPlan plan;
  std::string in_words() const { return cap == 0 ? "as recorded" : "cap " + byte_size_in_words(cap); }
};

std::vector<Variant> variants_of(const Arguments& given) {
  std::vector<Variant> variants;
  try {
    variants.push_back({0, plan_of(read_trace("bench replay", given.trace))});
  } catch (const json::exception& error) {
    throw ValueError("bench replay: {} lacks something that a trace of Brigade has: {}", given.trace, error.what());
  }
  if (!given.caps.empty()) {
    for (const int64_t cap : parse_byte_sizes(given.caps, 2))
      variants.push_back({cap, recut(variants.front().plan, cap)});
  }
  return variants;
}

Samples recorded_steps(const ReplayPlan& plan) {
  Samples steps;
  for (const std::vector<ReplayStep>& rank : plan.ranks) {
    std::vector<double>& values = steps.emplace_back();
    for (const ReplayStep& step : rank)
      values.push_back(step.recorded_us * 1e-3);
  }
  return steps;
}

double recorded_overlap(const ReplayPlan& plan) {
  double all = 0;
  double hidden = 0;
  for (const std::vector<ReplayStep>& rank : plan.ranks) {
    for (const ReplayStep& step : rank) {
      all += step.recorded.on_the_way_ms;
      hidden += step.recorded.hidden_ms;
    }
  }
  return all > 0 ? hidden / all : 0;
}

void print_recorded(const ReplayPlan& plan, const json& recorded) {
  std::cout << fmt::format(
      "{} on {} ranks over {}, {} steps; the ranks sleep where the trace computes; medians over steps, rounds and ranks, "
      "milliseconds\n",
      plan.module, plan.ranks.size(), plan.backend, plan.ranks.front().size());
  std::cout << fmt::format("{:<20} {:<10} {:>8} {:>9} {:>9} {:>10} {:>8} {:>9} {:>9}\n", "buckets", "over", "number",
                           "step ms", "min", "x recorded", "hidden", "waiting", "reducing");
  std::cout << fmt::format("{:<20} {:<10} {:>8} {:>9.3f} {:>9.3f} {:>10} {:>6.1f} %\n", "the trace itself",
                           plan.backend, plan.ranks[0].back().buckets.size(), recorded.at("median").get<double>(),
                           recorded.at("min").get<double>(), "1.000", 100 * recorded_overlap(plan));
}

// Prints a variant and adds its row.
void tell(const RanksRun& run, size_t index, const Variant& variant, const json& recorded, Arguments& given) {
  const json step = to_json(spread_of(run.samples(index, "step_ms")));
  const double sent = total(run.samples(index, "on_the_way_ms"));
  const double overlap = sent > 0 ? total(run.samples(index, "hidden_ms")) / sent : 0;
  const json waiting = to_json(spread_of(run.samples(index, "waiting_ms")));
  const json reducing = to_json(spread_of(run.samples(index, "reducing_ms")));
  const double ratio = step.at("median").get<double>() / recorded.at("median").get<double>();
  const size_t buckets = variant.plan.ranks[0].back().buckets.size();
  const std::string backend = run.backends().front();
  const std::string against = given.options.report.add({{"module", variant.plan.module},
                                                        {"backend", backend},
                                                        {"link", given.link},
                                                        {"ranks", variant.plan.ranks.size()},
                                                        {"cap", variant.cap == 0 ? json(nullptr) : json(variant.cap)}},
                                                       {{"buckets", buckets},
                                                        {"steps", variant.plan.ranks[0].size()},
                                                        {"recorded_ms", recorded},
                                                        {"recorded_overlap", recorded_overlap(variant.plan)},
                                                        {"step_ms", step},
                                                        {"ratio", ratio},
                                                        {"overlap", overlap},
                                                        {"waiting_ms", waiting},
                                                        {"reducing_ms", reducing},
                                                        {"rounds", run.rank(0).at(index).at("rounds")}});
  std::cout << fmt::format("{:<20} {:<10} {:>8} {:>9.3f} {:>9.3f} {:>10.3f} {:>6.1f} % {:>9.3f} {:>9.3f} {}\n",
                           variant.in_words(), given.link.empty() ? backend : "the link", buckets,
                           step.at("median").get<double>(), step.at("min").get<double>(), ratio, 100 * overlap,
                           waiting.at("median").get<double>(), reducing.at("median").get<double>(), against);
}

void run(Arguments& given) {
  const std::vector<Variant> variants = variants_of(given);
  if (!given.link.empty()) check_carries_link(given.options.backends());
  given.options.report.begin();
  const ReplayPlan& plan = variants.front().plan;
  const json recorded = to_json(spread_of(recorded_steps(plan)));
  print_recorded(plan, recorded);
  json plans = json::array();
  for (const Variant& variant : variants) {
    json ranks = json::array();
    for (const std::vector<ReplayStep>& steps : variant.plan.ranks)
      ranks.push_back(to_json(steps));
    plans.push_back(std::move(ranks));
  }
  const json arguments{{"link", given.link}, {"plans", std::move(plans)}, {"limits", to_json(given.options.limits())}};
  for (const std::string& backend : given.options.backends()) {
    const std::vector<RanksRun> runs =
        run_on_ranks(kReplayJob, arguments, {backend}, static_cast<int>(plan.ranks.size()));
    for (size_t i = 0; i < variants.size(); ++i)
      tell(runs.front(), i, variants[i], recorded, given);
  }
  if (!given.link.empty()) std::cout << "the link: " << in_words(parse_link(given.link)) << "\n";
  given.options.report.write();
}

void add_command(Command& bench) {
  auto given = std::make_shared<Arguments>();
  Command command = bench.add_command(
      "replay", "The collectives of a trace again, with its gaps: larger buckets, a slower link, another backend");
  command.footer(
      "A trace is what brigade train --trace, brigade explain --trace and dist::trace_json write. As many ranks as it has.\n"
      "\nExamples:\n  brigade explain digits --trace trace.json && brigade bench replay trace.json\n"
      "  brigade bench replay trace.json --caps 64K-4M:x4\n"
      "  brigade bench replay trace.json --caps 64K,1M --link 50us,1GB/s --json replay.json\n"
      "  brigade bench replay trace.json --backends threads,shm,gloo");
  command.add_option("trace", given->trace, "the file of the trace").required();
  given->options.add_to(command, {.backends = "threads",
                                  .rounds = "5-50",
                                  .noise_percent = 2,
                                  .seconds = 20,
                                  .measure = "step_ms",
                                  .plots = false});
  command.add_option("--caps", given->caps, "also with its gradients in buckets of these sizes: 64K,1M-16M:x4")
      .separated_by(',');
  add_link(command, given->link, "over a link of this speed (on threads or shm)");
  command.action([given] {
    run(*given);
    return 0;
  });
}

const AddBenchmark add(4, &add_command);

}  // namespace
}  // namespace brigade::lab::bench
