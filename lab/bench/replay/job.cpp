// Plays the variants in turns.
#include <brigade/lab/bench/replay/player.h>

#include <brigade/lab/bench/on_ranks.h>
#include <brigade/lab/bench/rounds.h>
#include <brigade/lab/bench/simulated_link.h>

#include <nlohmann/json.hpp>

#include <memory>
#include <vector>

namespace brigade::lab::bench {
namespace {

using nlohmann::json;

struct Variant {
  std::unique_ptr<Player> player;
  std::vector<std::vector<Player::Played>> rounds = {};  // including warm-up
};

json row_of(const Variant& variant, const RoundsRun& run) {
  json row = to_json(run);
  for (const char* field : {"step_ms", "on_the_way_ms", "hidden_ms", "waiting_ms", "reducing_ms"})
    row[field] = json::array();
  for (size_t i = variant.rounds.size() - static_cast<size_t>(run.rounds); i < variant.rounds.size(); ++i) {
    for (const Player::Played& step : variant.rounds[i]) {
      row["step_ms"].push_back(step.step_ms);
      row["on_the_way_ms"].push_back(step.shares.on_the_way_ms);
      row["hidden_ms"].push_back(step.shares.hidden_ms);
      row["waiting_ms"].push_back(step.shares.waiting_ms);
      row["reducing_ms"].push_back(step.shares.reducing_ms);
    }
  }
  return row;
}

std::string replay_job(dist::ProcessGroupPtr group, const std::string& arguments) {
  const json given = json::parse(arguments);
  const std::string link = given.at("link");
  if (!link.empty()) group = over_link(group, parse_link(link));
  const auto rank = static_cast<size_t>(group->rank());
  std::vector<Variant> variants;
  for (const json& plan : given.at("plans"))
    variants.push_back({std::make_unique<Player>(steps_from(plan.at(rank)), group)});
  std::vector<Turn> turns;
  for (Variant& variant : variants) {
    turns.push_back({"variant", [&variant] {
                       variant.rounds.push_back(variant.player->play());
                       double ms = 0;
                       for (const Player::Played& step : variant.rounds.back())
                         ms += step.step_ms;
                       return ms * 1e3;
                     }});
  }
  const RoundsRun run = take_turns(turns, round_limits_from(given.at("limits")), group.get());
  json rows = json::array();
  for (const Variant& variant : variants)
    rows.push_back(row_of(variant, run));
  return rows.dump();
}

const AddRankJob add_job(kReplayJob, &replay_job);

}  // namespace
}  // namespace brigade::lab::bench
