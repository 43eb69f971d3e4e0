// Takes the turns, and lets all ranks decide whether to run one more round.
#include <brigade/lab/bench/rounds.h>

#include <brigade/core/factory.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/lab/bench/spread.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <span>

namespace brigade::lab::bench {
namespace {

double largest_noise(const std::vector<Turn>& turns) {
  double largest = 0;
  for (const Turn& turn : turns)
    largest = std::max(largest, noise_of(turn.us));
  return largest;
}

// The maximum over ranks.
double most_of(dist::ProcessGroup* group, double mine) {
  if (group == nullptr || group->size() == 1) return mine;
  const double values[] = {mine};
  const Tensor value = from_values(std::span<const double>(values), {1});
  group->all_reduce(value, {.op = dist::ReduceOp::Max, .description = "noise of a round"})->wait();
  return *value.data_ptr<double>();
}

}  // namespace

nlohmann::json to_json(const RoundLimits& limits) {
  return {{"least", limits.least},
          {"most", limits.most},
          {"noise", limits.noise},
          {"seconds", limits.seconds},
          {"warm_up", limits.warm_up}};
}

RoundLimits round_limits_from(const nlohmann::json& json) {
  return {.least = json.at("least"),
          .most = json.at("most"),
          .noise = json.at("noise"),
          .seconds = json.at("seconds"),
          .warm_up = json.at("warm_up")};
}

nlohmann::json to_json(const RoundsRun& run) {
  nlohmann::json json{{"rounds", run.rounds}, {"noise", nullptr}};
  if (std::isfinite(run.noise)) json["noise"] = run.noise;
  return json;
}

RoundsRun rounds_run_from(const nlohmann::json& row) {
  const nlohmann::json& noise = row.at("noise");
  return {.rounds = row.at("rounds"),
          .noise = noise.is_null() ? std::numeric_limits<double>::infinity() : noise.get<double>()};
}

RoundsRun take_turns(std::vector<Turn>& turns, const RoundLimits& limits, dist::ProcessGroup* group) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  for (int round = -limits.warm_up;; ++round) {
    for (size_t k = 0; k < turns.size(); ++k) {
      Turn& turn = turns[(k + static_cast<size_t>(round + limits.warm_up)) % turns.size()];
      if (group) group->barrier();
      const double us = turn.sample();
      if (round >= 0) turn.us.push_back(us);
    }
    const int done = round + 1;
    if (done < limits.least) continue;
    const bool late = std::chrono::duration<double>(Clock::now() - begin).count() >= limits.seconds;
    // All ranks run one more round when any rank wants it, so all stop after the same round.
    const bool wants_more = !late && largest_noise(turns) > limits.noise;
    if (done >= limits.most || most_of(group, wants_more ? 1 : 0) == 0)
      return {.rounds = done, .noise = most_of(group, largest_noise(turns))};
  }
}

std::string in_words(const RoundsRun& run, const RoundLimits& limits) {
  if (!std::isfinite(run.noise)) return fmt::format("{} rounds, too few to tell the noise", run.rounds);
  const std::string noise = fmt::format("{} rounds, noise {:.1f} %", run.rounds, run.noise * 100);
  return run.noise <= limits.noise ? noise : noise + fmt::format(" (above the bound of {:.1f} %)", limits.noise * 100);
}

}  // namespace brigade::lab::bench
