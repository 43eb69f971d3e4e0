// Measures the terms of all cases of a group in turns.
#include <brigade/lab/bench/bucket/terms.h>
#include <brigade/lab/bench/on_ranks.h>
#include <brigade/lab/bench/rounds.h>

#include <nlohmann/json.hpp>

#include <cmath>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace brigade::lab::bench {
namespace {

using nlohmann::json;

// One round.
struct Measured {
  BucketTerms terms;
  double together = 0, reduce = 0, rest = 0;
};

struct Entrant {
  std::string backend;
  json what;
  std::unique_ptr<MeasuredBucket> bucket;
  std::vector<Measured> rounds = {};  // including warm-up
};

BucketCase case_of(const json& given) {
  return {.bytes = given.at("bytes"),
          .parameters = given.at("parameters"),
          .dtype = dtype_from_name(given.at("dtype")),
          .hook = given.at("hook"),
          .placing = find_placing(given.at("gradients"))};
}

json row_of(const Entrant& entrant, const RoundsRun& run) {
  json row = entrant.what;
  row.update(to_json(run));
  row["backend"] = entrant.backend;
  row["payload_bytes"] = entrant.bucket->payload_bytes();
  const size_t first = entrant.rounds.size() - static_cast<size_t>(run.rounds);  // after warm-up
  const auto add = [&](const char* field, const auto& value_of) {
    json& values = row[field] = json::array();
    for (size_t i = first; i < entrant.rounds.size(); ++i) {
      const double value = value_of(entrant.rounds[i]);
      if (std::isfinite(value)) values.push_back(value);
    }
  };
  for (const auto& [field, term] :
       std::initializer_list<std::pair<const char*, double BucketTerms::*>>{{"flatten", &BucketTerms::flatten},
                                                                            {"numbers", &BucketTerms::numbers},
                                                                            {"flags", &BucketTerms::flags},
                                                                            {"launch", &BucketTerms::launch},
                                                                            {"reduce", &BucketTerms::reduce},
                                                                            {"copy_out", &BucketTerms::copy_out}})
    add(field, [term = term](const Measured& round) { return round.terms.*term; });
  add("sum", [](const Measured& round) { return round.terms.sum(); });
  add("together", [](const Measured& round) { return round.together; });
  add("reduce_in_backward", [](const Measured& round) { return round.reduce; });
  add("rest_in_backward", [](const Measured& round) { return round.rest; });
  return row;
}

void measure(const json& cases, const std::map<std::string, dist::ProcessGroupPtr>& groups, const RoundLimits& limits,
             json& rows) {
  std::vector<Entrant> entrants;
  for (const json& what : cases) {
    for (const auto& [backend, group] : groups)
      entrants.push_back({backend, what, std::make_unique<MeasuredBucket>(case_of(what), group)});
  }
  std::vector<Turn> turns;
  for (Entrant& entrant : entrants) {
    turns.push_back(
        {entrant.backend, [&entrant] {
           MeasuredBucket& bucket = *entrant.bucket;
           const BucketTerms terms = bucket.alone();
           const double together = bucket.together();
           entrant.rounds.push_back({terms, together, bucket.reduce_in_backward(), bucket.rest_in_backward()});
           return terms.sum();
         }});
  }
  const RoundsRun run = take_turns(turns, limits, groups.begin()->second.get());
  for (const Entrant& entrant : entrants)
    rows.push_back(row_of(entrant, run));
}

std::string terms_job(const dist::ProcessGroupPtr& group, const std::string& arguments) {
  const json given = json::parse(arguments);
  if (given.at("pin").get<bool>()) pin_rank(local_rank(*group));
  const std::map<std::string, dist::ProcessGroupPtr> groups = groups_of(group, given);
  json rows = json::array();
  for (const json& cases : given.at("groups"))
    measure(cases, groups, round_limits_from(given.at("limits")), rows);
  return rows.dump();
}

const AddRankJob add_job(kBucketTermsJob, &terms_job);

}  // namespace
}  // namespace brigade::lab::bench
