// Gathers the timelines of all ranks as text, and writes the events and the section "brigade".
#include <brigade/dist/timeline/trace.h>

#include <brigade/dist/diagnosis/fields.h>
#include <brigade/dist/timeline/json_text.h>
#include <brigade/dist/timeline/trace_events.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>

namespace brigade::dist {

namespace {

// One boot of one machine has one steady clock.
std::string clock_identity() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return boot;
}

std::string encode(const Timeline& timeline) {
  FieldWriter out;
  out << clock_identity() << static_cast<int64_t>(timeline.rounds().size());
  for (const RoundEvents& round : timeline.rounds()) {
    out << static_cast<int64_t>(round.round) << round.backward << round.forward_began << round.began
        << round.compute_ended << round.ended << static_cast<int64_t>(round.rebuilt)
        << static_cast<int64_t>(round.ready.size());
    for (const int64_t time : round.ready)
      out << time;
    out << static_cast<int64_t>(round.buckets.size());
    for (const BucketEvents& bucket : round.buckets) {
      out << std::vector<int>(bucket.parameters.begin(), bucket.parameters.end()) << bucket.bytes << bucket.filled
          << bucket.launched << bucket.arrived << bucket.reduced << bucket.finished << bucket.wait_began
          << bucket.wait_ended;
    }
  }
  return out.text();
}

RankTimeline decode(const std::string& text) {
  FieldReader in(text);
  RankTimeline timeline;
  timeline.clock = in.next();
  timeline.rounds.resize(static_cast<size_t>(in.number()));
  for (RoundEvents& round : timeline.rounds) {
    round.round = static_cast<uint64_t>(in.number());
    round.backward = in.next();
    round.forward_began = in.number();
    round.began = in.number();
    round.compute_ended = in.number();
    round.ended = in.number();
    round.rebuilt = in.number() != 0;
    round.ready.resize(static_cast<size_t>(in.number()));
    for (int64_t& time : round.ready)
      time = in.number();
    round.buckets.resize(static_cast<size_t>(in.number()));
    for (BucketEvents& bucket : round.buckets) {
      for (const int parameter : in.numbers())
        bucket.parameters.push_back(static_cast<uint32_t>(parameter));
      bucket.bytes = in.number();
      bucket.filled = in.number();
      bucket.launched = in.number();
      bucket.arrived = in.number();
      bucket.reduced = in.number();
      bucket.finished = in.number();
      bucket.wait_began = in.number();
      bucket.wait_ended = in.number();
    }
  }
  return timeline;
}

}  // namespace

std::string trace_json(ProcessGroup& group, const Reducer& reducer, SourceLocation where) {
  std::vector<RankTimeline> ranks;
  for (const std::string& text : group.all_gather_text(encode(reducer.timeline()), "timelines, to merge", where))
    ranks.push_back(decode(text));
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
  for (const BucketLayout& layout : reducer.layout()) {
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
      options.limits.first_bytes, options.limits.cap_bytes, reducer.has_rebuilt_buckets(), parameters, buckets,
      fmt::join(reducer.ready_order(), ", "), fmt::join(reducer.users(), ", "));
}

}  // namespace brigade::dist
