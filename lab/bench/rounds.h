// Rounds of a benchmark: what is compared takes turns, until the medians are known well enough.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <functional>
#include <string>
#include <vector>

namespace brigade::dist {
class ProcessGroup;
}

namespace brigade::lab::bench {

// One of the things that are compared.
struct Turn {
  std::string name;
  std::function<double()> sample;  // runs it; its time in microseconds
  std::vector<double> us = {};     // one a round
};

struct RoundLimits {
  int least = 5;        // counted rounds that are always run
  int most = 200;       // and that are never passed
  double noise = 0.03;  // rounds end when no turn's noise (spread.h) is above it
  double seconds = 5;   // or when they have lasted so long
  int warm_up = 1;      // rounds before, not counted
};
nlohmann::json to_json(const RoundLimits& limits);
RoundLimits round_limits_from(const nlohmann::json& json);

struct RoundsRun {
  int rounds = 0;
  double noise = 0;  // the largest of a turn and a rank
};
// {"rounds", "noise"}; a noise that is not finite is null. A row of a rank's answer has both.
nlohmann::json to_json(const RoundsRun& run);
RoundsRun rounds_run_from(const nlohmann::json& row);

// Runs the rounds; the order of the turns moves on by one each round, so that none always follows
// the same. With a group it is collective: a barrier before each turn, and all ranks end after the
// same round. Every call of `sample` is made on every rank.
RoundsRun take_turns(std::vector<Turn>& turns, const RoundLimits& limits, dist::ProcessGroup* group = nullptr);

// "7 rounds, noise 1.2 %"
std::string in_words(const RoundsRun& run, const RoundLimits& limits);

}  // namespace brigade::lab::bench
