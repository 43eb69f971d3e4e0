// Rounds of a benchmark: the compared items alternate until their medians are known well enough.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <functional>
#include <string>
#include <vector>

namespace brigade::dist {
class ProcessGroup;
}

namespace brigade::lab::bench {

// One of the compared items.
struct Turn {
  std::string name;
  std::function<double()> sample;  // runs it and returns its time in microseconds
  std::vector<double> us = {};     // one per round
};

struct RoundLimits {
  int least = 5;        // minimum number of counted rounds
  int most = 200;       // maximum number of counted rounds
  double noise = 0.03;  // stop when no turn's noise (spread.h) is above it
  double seconds = 5;   // or after this time
  int warm_up = 1;      // uncounted rounds at the start
};
nlohmann::json to_json(const RoundLimits& limits);
RoundLimits round_limits_from(const nlohmann::json& json);

struct RoundsRun {
  int rounds = 0;
  double noise = 0;  // the largest over turns and ranks
};
// {"rounds", "noise"}; a noise that is not finite becomes null. Each row of a rank's answer has both.
nlohmann::json to_json(const RoundsRun& run);
RoundsRun rounds_run_from(const nlohmann::json& row);

// Runs the rounds. The order of the turns rotates by one each round, so that no turn always follows the same one.
// With a group it is collective: there is a barrier before each turn, and all ranks stop after the same round.
// Every call of `sample` is made on every rank.
RoundsRun take_turns(std::vector<Turn>& turns, const RoundLimits& limits, dist::ProcessGroup* group = nullptr);

// "7 rounds, noise 1.2 %"
std::string in_words(const RoundsRun& run, const RoundLimits& limits);

}  // namespace brigade::lab::bench
