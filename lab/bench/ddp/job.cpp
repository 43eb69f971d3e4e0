// Takes the modes of each model in turns, one step at a time, and keeps what each step cost.
#include <brigade/lab/bench/ddp/job.h>

#include <brigade/lab/bench/ddp/replica.h>
#include <brigade/lab/bench/pinning.h>
#include <brigade/lab/bench/simulated_link.h>
#include <brigade/lab/rank_job.h>

#include <nlohmann/json.hpp>

#include <memory>
#include <vector>

namespace brigade::lab::bench {

namespace {

using nlohmann::json;

json round_of(const StepTimes& times) {
  const RoundShares& shares = times.shares;
  return {{"step_ms", times.step_ms},
          {"compute_ms", shares.compute_ms},
          {"waiting_ms", shares.waiting_ms},
          {"reducing_ms", shares.reducing_ms},
          {"placing_ms", shares.placing_ms},
          {"on_the_way_ms", shares.on_the_way_ms},
          {"hidden_ms", shares.hidden_ms},
          {"peers_known", shares.peers_known}};
}

json measured(const Workload& workload, const std::vector<std::string>& modes, const dist::ProcessGroupPtr& group,
              int warm_up, int rounds) {
  std::vector<std::unique_ptr<Replica>> replicas;
  json rows = json::array();
  for (const std::string& mode : modes) {
    replicas.push_back(std::make_unique<Replica>(workload, find_mode(mode), group));
    rows.push_back({{"model", workload.name},
                    {"mode", mode},
                    {"bytes", replicas.back()->bytes()},
                    {"tensors", replicas.back()->tensors()},
                    {"rounds", json::array()}});
  }
  for (int round = -warm_up; round < rounds; ++round) {
    for (size_t k = 0; k < replicas.size(); ++k) {
      // The order turns, so that no mode always follows the same other one.
      const size_t turn = (k + static_cast<size_t>(round + warm_up)) % replicas.size();
      group->barrier();
      const StepTimes times = replicas[turn]->step();
      if (round < 0) continue;
      rows[turn]["rounds"].push_back(round_of(times));
      rows[turn]["buckets"] = times.buckets;
    }
  }
  return rows;
}

std::string ddp_job(dist::ProcessGroupPtr group, const std::string& arguments) {
  const json given = json::parse(arguments);
  if (given.at("pin").get<bool>()) pin_rank(local_rank(*group));
  const std::string link = given.at("link");
  if (!link.empty()) group = over_link(group, parse_link(link));
  json rows = json::array();
  for (const std::string model : given.at("models")) {
    for (json& row :
         measured(find_workload(model), given.at("modes"), group, given.at("warm_up"), given.at("rounds")))
      rows.push_back(std::move(row));
  }
  return rows.dump();
}

const AddRankJob add_job(kDdpJob, &ddp_job);

}  // namespace

}  // namespace brigade::lab::bench
