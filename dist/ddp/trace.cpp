// Gathers the timelines of all ranks as text, and writes the events and the section "brigade".
#include <brigade/dist/ddp/trace.h>

#include <brigade/dist/errors/json.h>
#include <brigade/dist/timeline/trace_events.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>

namespace brigade::dist {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BucketEvents, parameters, bytes, filled, launched, arrived, reduced, finished,
                                   wait_began, wait_ended, device_began, device_ended)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StepEvents, optimizer, number, where, at, loss_scale, found_inf, skipped)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RoundEvents, round, backward, forward_began, began, compute_ended, ended,
                                   device_began, device_compute_ended, ready, buckets, rebuilt, non_finite, steps)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankTimeline, clock, rounds)

namespace {

// Processes share a steady clock within one boot of one machine.
std::string clock_identity() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return boot;
}

}  // namespace

std::string trace_json(const DistributedDataParallelBase& ddp, SourceLocation where) {
  const Reducer& reducer = ddp.reducer();
  ProcessGroup& group = ddp.group();
  const auto& rounds = ddp.timeline().rounds();
  const RankTimeline mine{clock_identity(), {rounds.begin(), rounds.end()}};
  const auto ranks = decoded_of_all<RankTimeline>(group.all_gather_text(to_text(mine), "timelines, to merge", where));
  std::vector<std::string> names;
  for (const NamedParameter& parameter : reducer.parameters())
    names.push_back(parameter.name);

  std::string parameters;
  for (const NamedParameter& parameter : reducer.parameters()) {
    parameters += fmt::format(R"({}{{"name": {}, "dtype": "{}", "numel": {}, "bytes": {}}})",
                              parameters.empty() ? "" : ", ", json_string(parameter.name),
                              name(parameter.tensor.dtype()), parameter.tensor.numel(), parameter.tensor.nbytes());
  }
  std::string buckets;
  for (const BucketLayout& layout : reducer.buckets().layouts()) {
    buckets += fmt::format(R"({}{{"dtype": "{}", "parameters": [{}], "numel": {}}})", buckets.empty() ? "" : ", ",
                           name(layout.dtype), fmt::join(layout.parameters, ", "), layout.gradient_numel);
  }
  const ReducerOptions& options = reducer.options();
  return fmt::format(
      R"({{"traceEvents": {},
"displayTimeUnit": "ms",
"brigade": {{"module": {}, "ranks": {}, "backend": "{}", "first_bucket_bytes": {}, "bucket_cap_bytes": {}, "rebuilt": {},
  "parameters": [{}],
  "buckets": [{}],
  "ready_order": [{}],
  "users": [{}]}}}}
)",
      trace_events(ranks, names, group.backend()), json_string(options.module_name), group.size(), group.backend(),
      options.limits.first_bytes, options.limits.cap_bytes, reducer.buckets().is_rebuilt(), parameters, buckets,
      fmt::join(reducer.past().ready_order, ", "), fmt::join(reducer.past().users, ", "));
}

}  // namespace brigade::dist
