// Cuts the same gradients into buckets of several sizes, and times their backwards in turns.
#include <brigade/core/factory.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/lab/bench/bucket/given_gradients.h>
#include <brigade/lab/bench/bucket/terms.h>
#include <brigade/lab/bench/round_shares.h>
#include <brigade/lab/bench/rounds.h>
#include <brigade/lab/bench/simulated_link.h>
#include <brigade/lab/rank_job.h>

#include <nlohmann/json.hpp>

#include <chrono>
#include <memory>
#include <vector>

namespace brigade::lab::bench {
namespace {

using nlohmann::json;
using Wrapper = dist::DistributedDataParallel<GivenGradients>;

struct Entrant {
  int64_t cap = 0;
  std::unique_ptr<Wrapper> ddp;
  std::vector<RoundShares> rounds = {};  // including warm-up
};

dist::DDPOptions capped(int64_t bytes) {
  const double mib = static_cast<double>(bytes) / (1 << 20);
  return {.bucket_cap_mb = mib, .first_bucket_mb = mib};
}

RoundShares backward(Wrapper& ddp, dist::ProcessGroup& group) {
  ddp.module()->zero_grad();
  const Tensor loss = ddp(zeros({1}, ddp.module()->options.dtype));
  group.barrier();
  loss.backward();
  return shares_of(ddp.timeline().rounds().back());
}

json row_of(const Entrant& entrant, const RoundsRun& run) {
  json row{{"cap", entrant.cap},
           {"bucket_bytes", json::array()},
           {"backward_ms", json::array()},
           {"on_the_way_ms", json::array()},
           {"hidden_ms", json::array()}};
  row.update(to_json(run));
  for (const dist::BucketEvents& bucket : entrant.ddp->timeline().rounds().back().buckets)
    row["bucket_bytes"].push_back(bucket.bytes);
  for (size_t i = entrant.rounds.size() - static_cast<size_t>(run.rounds); i < entrant.rounds.size(); ++i) {
    row["backward_ms"].push_back(entrant.rounds[i].backward_ms());
    row["on_the_way_ms"].push_back(entrant.rounds[i].on_the_way_ms);
    row["hidden_ms"].push_back(entrant.rounds[i].hidden_ms);
  }
  return row;
}

std::string overlap_job(const dist::ProcessGroupPtr& inner, const std::string& arguments) {
  const json given = json::parse(arguments);
  const dist::ProcessGroupPtr group = over_link(inner, parse_link(given.at("link")));
  const GivenGradientsOptions options{
      .bytes = given.at("bytes"),
      .count = given.at("parameters"),
      .dtype = dtype_from_name(given.at("dtype")),
      .seed = static_cast<uint64_t>(group->rank()) + 1,
      .compute = std::chrono::nanoseconds(static_cast<int64_t>(given.at("compute_ms").get<double>() * 1e6))};
  std::vector<Entrant> entrants;
  for (const int64_t cap : given.at("caps"))
    entrants.push_back({cap, std::make_unique<Wrapper>(GivenGradients(options), group, capped(cap))});
  std::vector<Turn> turns;
  for (Entrant& entrant : entrants) {
    turns.push_back({"cap", [&entrant, &group] {
                       entrant.rounds.push_back(backward(*entrant.ddp, *group));
                       return entrant.rounds.back().backward_ms() * 1e3;
                     }});
  }
  const RoundsRun run = take_turns(turns, round_limits_from(given.at("limits")), inner.get());
  json rows = json::array();
  for (const Entrant& entrant : entrants)
    rows.push_back(row_of(entrant, run));
  return rows.dump();
}

const AddRankJob add_job(kBucketOverlapJob, &overlap_job);

}  // namespace
}  // namespace brigade::lab::bench
