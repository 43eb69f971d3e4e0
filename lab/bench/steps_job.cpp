// Takes one step of each way in turns, and counts the collectives of each.
#include <brigade/lab/bench/steps.h>

#include <brigade/core/error.h>
#include <brigade/lab/bench/rounds.h>
#include <brigade/lab/rank_job.h>
#include <brigade/lab/traffic.h>

#include <nlohmann/json.hpp>

#include <chrono>

namespace brigade::lab::bench {
namespace {

using nlohmann::json;

std::vector<StepsBenchmark>& list() {
  static std::vector<StepsBenchmark> all;
  return all;
}

const StepsBenchmark& find(const std::string& name) {
  for (const StepsBenchmark& each : list()) {
    if (each.name == name) return each;
  }
  throw ValueError("there is no benchmark of steps '{}'", name);
}

// Totals over the counted steps.
struct Sent {
  int steps = 0;
  uint64_t collectives = 0;
  double bytes = 0;  // NaN when some are unknown
};

Turn turn_of(const Way& way, dist::ProcessGroup& group, int warm_up, Sent& sent) {
  return {way.name, [&way, &group, &sent, left = warm_up]() mutable {
            const uint64_t before = latest_collective(group);
            const auto begin = std::chrono::steady_clock::now();
            way.step();
            const double us =
                std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
            if (left-- > 0) return us;
            const Traffic traffic = traffic_since(group, before);
            ++sent.steps;
            sent.collectives += traffic.collectives;
            sent.bytes += traffic.bytes;
            return us;
          }};
}

std::string steps_job(const dist::ProcessGroupPtr& group, const std::string& arguments) {
  const json given = json::parse(arguments);
  const RoundLimits limits = round_limits_from(given.at("limits"));
  const StepsOptions options{.layers = given.at("layers"), .width = given.at("width")};
  const std::vector<Way> ways = find(given.at("benchmark")).ways(group, options);
  std::vector<Sent> sent(ways.size());
  std::vector<Turn> turns;
  for (size_t i = 0; i < ways.size(); ++i)
    turns.push_back(turn_of(ways[i], *group, limits.warm_up, sent[i]));
  const RoundsRun run = take_turns(turns, limits, group.get());
  json rows = json::array();
  for (size_t i = 0; i < ways.size(); ++i) {
    json row{{"mode", ways[i].name},
             {"us", turns[i].us},
             {"compared_with", ways[i].compared_with},
             {"collectives", static_cast<double>(sent[i].collectives) / sent[i].steps},
             {"bytes", sent[i].bytes / sent[i].steps}};
    row.update(to_json(run));
    rows.push_back(std::move(row));
  }
  return rows.dump();
}

const AddRankJob add_job(kStepsJob, &steps_job);

}  // namespace

AddStepsBenchmark::AddStepsBenchmark(StepsBenchmark benchmark) { list().push_back(std::move(benchmark)); }

const std::vector<StepsBenchmark>& steps_benchmarks() { return list(); }

}  // namespace brigade::lab::bench
