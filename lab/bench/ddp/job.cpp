// Runs the modes of each model in turns, one step at a time, and records the times of each step.
#include <brigade/lab/bench/ddp/summary.h>

#include <brigade/core/device_runtime.h>
#include <brigade/lab/bench/ddp/replica.h>
#include <brigade/lab/bench/on_ranks.h>
#include <brigade/lab/bench/rounds.h>
#include <brigade/lab/bench/simulated_link.h>
#include <brigade/lab/rank_job.h>

#include <nlohmann/json.hpp>

#include <memory>
#include <vector>

namespace brigade::lab::bench {
namespace {

using nlohmann::json;

// A replica that alternates with the others, and the times of its steps.
struct Entrant {
  std::string backend;
  std::unique_ptr<Replica> replica;
  std::vector<StepTimes> steps = {};  // all rounds, including warm-up
};

json row_of(const Workload& workload, const Entrant& entrant, const RoundsRun& run) {
  const size_t first = entrant.steps.size() - static_cast<size_t>(run.rounds);  // after warm-up
  json row{{"model", workload.name},
           {"backend", entrant.backend},
           {"mode", entrant.replica->mode().name},
           {"bytes", entrant.replica->bytes()},
           {"tensors", entrant.replica->tensors()},
           {"buckets", entrant.steps.back().buckets},
           {"peers_known", true}};
  row.update(to_json(run));
  for (const auto& [field, part] : std::initializer_list<std::pair<const char*, double RoundShares::*>>{
           {"compute_ms", &RoundShares::compute_ms},
           {"waiting_ms", &RoundShares::waiting_ms},
           {"reducing_ms", &RoundShares::reducing_ms},
           {"placing_ms", &RoundShares::placing_ms},
           {"on_the_way_ms", &RoundShares::on_the_way_ms},
           {"hidden_ms", &RoundShares::hidden_ms}}) {
    json& values = row[field] = json::array();
    for (size_t i = first; i < entrant.steps.size(); ++i)
      values.push_back(entrant.steps[i].shares.*part);
  }
  json& steps = row["step_ms"] = json::array();
  for (size_t i = first; i < entrant.steps.size(); ++i) {
    steps.push_back(entrant.steps[i].step_ms);
    row["peers_known"] = row["peers_known"].get<bool>() && entrant.steps[i].shares.peers_known;
  }
  return row;
}

void measure(const Workload& workload, const std::vector<std::string>& modes,
             const std::map<std::string, dist::ProcessGroupPtr>& groups, Device device, const RoundLimits& limits,
             json& rows) {
  std::vector<Entrant> entrants;
  for (const auto& [backend, group] : groups) {
    for (const std::string& mode : modes)
      entrants.push_back({backend, std::make_unique<Replica>(workload, find_mode(mode), group, device)});
  }
  std::vector<Turn> turns;
  for (Entrant& entrant : entrants) {
    turns.push_back({entrant.backend + " " + entrant.replica->mode().name, [&entrant] {
                       entrant.steps.push_back(entrant.replica->step());
                       return entrant.steps.back().step_ms * 1e3;
                     }});
  }
  const RoundsRun run = take_turns(turns, limits, groups.begin()->second.get());
  for (const Entrant& entrant : entrants)
    rows.push_back(row_of(workload, entrant, run));
}

std::string ddp_job(const dist::ProcessGroupPtr& group, const std::string& arguments) {
  const json given = json::parse(arguments);
  if (given.at("pin").get<bool>()) pin_rank(local_rank(*group));
  const Device device = choose_device(given.at("device").get<std::string>(), local_rank(*group));
  set_current_device(device);
  std::map<std::string, dist::ProcessGroupPtr> groups = groups_of(group, given);
  const std::string link = given.at("link");
  if (!link.empty()) {
    for (auto& [backend, each] : groups)
      each = over_link(each, parse_link(link));
  }
  json rows = json::array();
  for (const std::string model : given.at("models"))
    measure(find_workload(model), given.at("modes"), groups, device, round_limits_from(given.at("limits")), rows);
  return rows.dump();
}

const AddRankJob add_job(kDdpJob, &ddp_job);

}  // namespace
}  // namespace brigade::lab::bench
