// Reads the steps from a trace's slices, and cuts their gradients into other buckets.
#include <brigade/lab/bench/replay/plan.h>

#include <brigade/core/error.h>
#include <brigade/dist/buckets/payload.h>
#include <brigade/dist/observers/norm_meter.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

namespace brigade::lab::bench {
namespace {

using nlohmann::json;

// One step of one rank, collected from its slices.
struct Recorded {
  std::optional<double> forward;
  double began = 0, compute_ended = 0, ended = 0;
  bool is_whole = false;  // has both slices of its backward
  std::map<std::string, double> ready;
  std::map<int, dist::BucketEvents> buckets;
};
// By rank, then by iteration.
using Recordings = std::map<int, std::map<int64_t, Recorded>>;

void take_collective(const TraceSlice& slice, Recorded& step) {
  if (slice.category == "collective on a device")
    throw ValueError("the collectives of this trace ran on a device; a replay knows the moments of the host only");
  dist::BucketEvents& bucket = step.buckets[slice.arguments->at("bucket").get<int>()];
  if (slice.name == "wait for peers") {
    bucket.arrived = ns_of_us(slice.end);
  } else if (slice.name == "reduce") {
    bucket.reduced = ns_of_us(slice.end);
  } else {
    bucket.launched = ns_of_us(slice.begin);
    bucket.finished = ns_of_us(slice.end);
    bucket.bytes = slice.arguments->at("bytes");
  }
}

Recordings recordings_of(const Trace& trace) {
  Recordings all;
  for (const TraceSlice& slice : trace.slices) {
    if (!slice.arguments->contains("iteration") || slice.arguments->contains("optimizer")) continue;
    Recorded& step = all[slice.rank][slice.arguments->at("iteration").get<int64_t>()];
    if (slice.name == "forward") {
      step.forward = slice.begin;
    } else if (slice.name == "backward") {
      step.began = slice.begin;
      step.compute_ended = slice.end;
    } else if (slice.name == "wait for collectives") {
      step.ended = slice.end;
      step.is_whole = true;
    } else if (!slice.category.empty()) {
      take_collective(slice, step);
    } else if (slice.instant) {
      step.ready[slice.name] = slice.begin;
    }
  }
  return all;
}

ReplayStep step_of(const Recorded& recorded, double first_begin, const std::vector<std::string>& names,
                   const std::vector<DType>& dtypes) {
  const double begin = recorded.forward.value_or(recorded.began);
  dist::RoundEvents events;
  events.began = ns_of_us(begin);
  events.compute_ended = ns_of_us(recorded.compute_ended);
  events.ended = ns_of_us(recorded.ended);
  ReplayStep step{.late_us = begin - first_begin,
                  .compute_us = recorded.compute_ended - begin,
                  .recorded_us = recorded.ended - begin};
  int64_t last = events.compute_ended;
  for (const auto& [number, bucket] : recorded.buckets) {
    events.buckets.push_back(bucket);
    last = std::max(last, bucket.finished);
    const auto index = static_cast<size_t>(number);
    step.buckets.push_back({static_cast<double>(bucket.launched) * 1e-3 - begin, bucket.bytes,
                            index < dtypes.size() ? dtypes[index] : DType::Float32});
  }
  step.rest_us = static_cast<double>(events.ended - last) * 1e-3;
  for (const std::string& name : names) {
    const auto ready = recorded.ready.find(name);
    step.ready_us.push_back(ready == recorded.ready.end() ? -1 : ready->second - begin);
  }
  step.recorded = shares_of(events);
  return step;
}

// The number of elements of a payload in addition to the gradients.
int64_t tail_of(const dist::BucketLayout& layout, size_t ranks) {
  return dist::TailLayout(layout.dtype, static_cast<int>(ranks), layout.parameters.size(), dist::words_of_diagnosis())
      .numel;
}

}  // namespace

ReplayPlan plan_of(const Trace& trace) {
  const json& facts = trace.facts;
  ReplayPlan plan{.module = facts.at("module"), .backend = facts.at("backend")};
  std::vector<std::string> names;
  for (const json& parameter : facts.at("parameters")) {
    names.push_back(parameter.at("name"));
    plan.parameters.push_back({parameter.at("numel"), dtype_from_name(parameter.at("dtype"))});
  }
  plan.order = facts.at("ready_order").get<std::vector<uint32_t>>();
  std::vector<bool> is_ready(names.size());
  for (const uint32_t parameter : plan.order) {
    if (parameter >= names.size())
      throw ValueError("the ready order of this trace names parameter {}; it has {}", parameter, names.size());
    is_ready[parameter] = true;
  }
  for (uint32_t i = 0; i < names.size(); ++i) {
    if (!is_ready[i]) plan.order.push_back(i);
  }
  std::vector<DType> dtypes;
  for (const json& bucket : facts.at("buckets"))
    dtypes.push_back(dtype_from_name(bucket.at("dtype")));

  Recordings all = recordings_of(trace);
  const size_t ranks = facts.at("ranks");
  plan.ranks.resize(ranks);
  for (const auto& [iteration, first] : all[0]) {
    double begin = INFINITY;
    bool everywhere = true;
    for (size_t r = 0; r < ranks; ++r) {
      const auto found = all[static_cast<int>(r)].find(iteration);
      everywhere = everywhere && found != all[static_cast<int>(r)].end() && found->second.is_whole;
      if (everywhere) begin = std::min(begin, found->second.forward.value_or(found->second.began));
    }
    for (size_t r = 0; r < ranks && everywhere; ++r)
      plan.ranks[r].push_back(step_of(all[static_cast<int>(r)].at(iteration), begin, names, dtypes));
  }
  if (plan.ranks.empty() || plan.ranks.front().empty())
    throw ValueError("no step of this trace is there on all of its {} ranks: nothing to replay", ranks);
  return plan;
}

ReplayPlan recut(const ReplayPlan& plan, int64_t cap_bytes) {
  const std::vector<dist::BucketLayout> layouts =
      dist::assign_buckets(plan.parameters, plan.order, {.first_bytes = cap_bytes, .cap_bytes = cap_bytes});
  ReplayPlan cut = plan;
  for (std::vector<ReplayStep>& rank : cut.ranks) {
    for (ReplayStep& step : rank) {
      step.buckets.clear();
      // A missing gradient (-1) is known to be missing when backward begins, a time that the step does not record.
      double launched = 0;
      for (const dist::BucketLayout& layout : layouts) {
        for (const uint32_t parameter : layout.parameters)
          launched = std::max(launched, step.ready_us[parameter]);
        const auto bytes =
            (layout.gradient_numel + tail_of(layout, plan.ranks.size())) * static_cast<int64_t>(itemsize(layout.dtype));
        step.buckets.push_back({launched, bytes, layout.dtype});
      }
    }
  }
  return cut;
}

json to_json(const std::vector<ReplayStep>& steps) {
  json all = json::array();
  for (const ReplayStep& step : steps) {
    json buckets = json::array();
    for (const ReplayBucket& bucket : step.buckets)
      buckets.push_back({bucket.at_us, bucket.bytes, name(bucket.dtype)});
    all.push_back({{"late_us", step.late_us},
                   {"buckets", std::move(buckets)},
                   {"ready_us", step.ready_us},
                   {"compute_us", step.compute_us},
                   {"rest_us", step.rest_us}});
  }
  return all;
}

std::vector<ReplayStep> steps_from(const json& given) {
  std::vector<ReplayStep> steps;
  for (const json& each : given) {
    ReplayStep step{.late_us = each.at("late_us"),
                    .ready_us = each.at("ready_us").get<std::vector<double>>(),
                    .compute_us = each.at("compute_us"),
                    .rest_us = each.at("rest_us")};
    for (const json& bucket : each.at("buckets"))
      step.buckets.push_back({bucket.at(0), bucket.at(1), dtype_from_name(bucket.at(2))});
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace brigade::lab::bench
