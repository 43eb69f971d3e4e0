// Measures the terms of all cases of a group in turns.
#include <brigade/lab/bench/bucket/job.h>
#include <brigade/lab/bench/bucket/terms.h>
#include <brigade/lab/bench/on_ranks.h>
#include <brigade/lab/bench/pinning.h>
#include <brigade/lab/bench/rounds.h>

#include <nlohmann/json.hpp>

#include <cmath>
#include <memory>
#include <vector>

namespace brigade::lab::bench::bucket_terms_job {

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
  std::vector<Measured> rounds = {};  // those of warm-up too
};

BucketCase case_of(const json& given) {
  return {.bytes = given.at("bytes"),
          .parameters = given.at("parameters"),
          .dtype = dtype_from_name(given.at("dtype")),
          .hook = given.at("hook"),
          .placing = find_placing(given.at("gradients"))};
}

json row_of(const Entrant& entrant, size_t counted) {
  json row = entrant.what;
  row["backend"] = entrant.backend;
  row["payload_bytes"] = entrant.bucket->payload_bytes();
  for (const char* field : {"flatten", "numbers", "flags", "launch", "reduce", "copy_out", "sum", "together",
                            "reduce_in_backward", "rest_in_backward"})
    row[field] = json::array();
  for (size_t i = entrant.rounds.size() - counted; i < entrant.rounds.size(); ++i) {
    const Measured& round = entrant.rounds[i];
    row["flatten"].push_back(round.terms.flatten);
    row["numbers"].push_back(round.terms.numbers);
    row["flags"].push_back(round.terms.flags);
    row["launch"].push_back(round.terms.launch);
    row["reduce"].push_back(round.terms.reduce);
    row["copy_out"].push_back(round.terms.copy_out);
    row["sum"].push_back(round.terms.sum());
    row["together"].push_back(round.together);
    if (std::isfinite(round.reduce)) row["reduce_in_backward"].push_back(round.reduce);
    row["rest_in_backward"].push_back(round.rest);
  }
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
  for (const Entrant& entrant : entrants) {
    json row = row_of(entrant, turns.front().us.size());
    row["rounds"] = run.rounds;
    row["noise"] = run.noise;
    rows.push_back(std::move(row));
  }
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

}  // namespace brigade::lab::bench::bucket_terms_job
