#include <brigade/dist/trace.h>

#include <brigade/dist/diagnosis/fields.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>

namespace brigade::dist {

namespace {

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return result + "\"";
}

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
          << bucket.launched << bucket.finished << bucket.wait_began << bucket.wait_ended;
    }
  }
  return out.text();
}

struct RankTimeline {
  std::string clock;
  std::vector<RoundEvents> rounds;
};

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
      bucket.finished = in.number();
      bucket.wait_began = in.number();
      bucket.wait_ended = in.number();
    }
  }
  return timeline;
}

// What to add to the times of `other` to have those of `first`.
int64_t clock_offset(const RankTimeline& first, const RankTimeline& other) {
  if (first.clock == other.clock) return 0;
  std::vector<int64_t> differences;
  for (const RoundEvents& a : first.rounds) {
    for (const RoundEvents& b : other.rounds) {
      if (a.round != b.round) continue;
      for (size_t i = 0; i < std::min(a.buckets.size(), b.buckets.size()); ++i)
        differences.push_back(a.buckets[i].finished - b.buckets[i].finished);
    }
  }
  if (differences.empty()) return 0;
  std::nth_element(differences.begin(), differences.begin() + static_cast<int64_t>(differences.size() / 2),
                   differences.end());
  return differences[differences.size() / 2];
}

}  // namespace

std::string trace_json(ProcessGroup& group, const Reducer& reducer, SourceLocation where) {
  std::vector<RankTimeline> ranks;
  for (const std::string& text : group.all_gather_text(encode(reducer.timeline()), "timelines, to merge", where))
    ranks.push_back(decode(text));
  int64_t origin = 0;
  std::vector<int64_t> offsets;
  for (const RankTimeline& rank : ranks) {
    offsets.push_back(clock_offset(ranks[0], rank));
    for (const RoundEvents& round : rank.rounds) {
      const int64_t begin = (round.forward_began > 0 ? round.forward_began : round.began) + offsets.back();
      origin = origin == 0 ? begin : std::min(origin, begin);
    }
  }
  const auto name_of = [&](uint32_t parameter) { return reducer.parameters()[parameter].name; };

  std::string events;
  const auto add = [&](const std::string& event) { events += (events.empty() ? "\n  " : ",\n  ") + event; };
  for (size_t r = 0; r < ranks.size(); ++r) {
    add(fmt::format(R"({{"name": "process_name", "ph": "M", "pid": {}, "args": {{"name": "rank {}"}}}})", r, r));
    const char* const lanes[] = {"compute", "collectives", "gradients ready"};
    for (int lane = 0; lane < 3; ++lane) {
      add(fmt::format(R"({{"name": "thread_name", "ph": "M", "pid": {}, "tid": {}, "args": {{"name": "{}"}}}})", r,
                      lane, lanes[lane]));
    }
    const auto at = [&](int64_t time) { return static_cast<double>(time + offsets[r] - origin) * 1e-3; };
    const auto span = [&](const std::string& name, int lane, int64_t begin, int64_t end, const std::string& arguments) {
      add(fmt::format(R"({{"name": {}, "ph": "X", "pid": {}, "tid": {}, "ts": {:.3f}, "dur": {:.3f}, "args": {{{}}}}})",
                      quoted(name), r, lane, at(begin), static_cast<double>(end - begin) * 1e-3, arguments));
    };
    for (const RoundEvents& round : ranks[r].rounds) {
      const std::string number = fmt::format(R"("iteration": {}, "backward": {})", round.round, quoted(round.backward));
      if (round.forward_began > 0) span("forward", 0, round.forward_began, round.began, number);
      span("backward", 0, round.began, round.compute_ended, number);
      span("wait for collectives", 0, round.compute_ended, round.ended,
           number + fmt::format(R"(, "overlap": {:.4f}, "rebuilt": {})", round.overlap(), round.rebuilt));
      for (size_t b = 0; b < round.buckets.size(); ++b) {
        const BucketEvents& bucket = round.buckets[b];
        const double seconds = static_cast<double>(std::max<int64_t>(1, bucket.finished - bucket.launched)) * 1e-9;
        const double algorithm = static_cast<double>(bucket.bytes) / seconds * 1e-9;
        const auto n = static_cast<double>(group.size());
        std::string names;
        for (const uint32_t parameter : bucket.parameters)
          names += (names.empty() ? "" : ", ") + quoted(name_of(parameter));
        span(fmt::format("bucket {}", b), 1, bucket.launched, bucket.finished,
             number +
                 fmt::format(R"(, "bucket": {}, "bytes": {}, "algorithm": "all_reduce over {}", "algbw_GBps": {:.4f}, )"
                             R"("busbw_GBps": {:.4f}, "filled_us": {:.3f}, "wait_began_us": {:.3f}, )"
                             R"("wait_ended_us": {:.3f}, "parameters": [{}])",
                             b, bucket.bytes, group.backend(), algorithm, algorithm * 2 * (n - 1) / n,
                             at(bucket.filled), at(bucket.wait_began), at(bucket.wait_ended), names));
      }
      for (uint32_t parameter = 0; parameter < round.ready.size(); ++parameter) {
        if (round.ready[parameter] == 0) continue;
        add(fmt::format(R"({{"name": {}, "ph": "i", "s": "t", "pid": {}, "tid": 2, "ts": {:.3f}, "args": {{{}}}}})",
                        quoted(name_of(parameter)), r, at(round.ready[parameter]), number));
      }
    }
  }

  std::string parameters;
  for (const NamedParameter& parameter : reducer.parameters()) {
    parameters += fmt::format(R"({}{{"name": {}, "dtype": "{}", "numel": {}, "bytes": {}}})",
                              parameters.empty() ? "" : ", ", quoted(parameter.name), name(parameter.tensor.dtype()),
                              parameter.tensor.numel(), parameter.tensor.nbytes());
  }
  std::string buckets;
  for (const BucketLayout& layout : reducer.layout()) {
    buckets += fmt::format(R"({}{{"dtype": "{}", "parameters": [{}], "numel": {}}})", buckets.empty() ? "" : ", ",
                           name(layout.dtype), fmt::join(layout.parameters, ", "), layout.gradient_numel);
  }
  const ReducerOptions& options = reducer.options();
  return fmt::format(
      R"({{"traceEvents": [{}
],
"displayTimeUnit": "ms",
"brigade": {{"module": {}, "ranks": {}, "backend": "{}", "first_bucket_bytes": {}, "bucket_cap_bytes": {}, "rebuilt": {},
  "parameters": [{}],
  "buckets": [{}],
  "ready_order": [{}],
  "users": [{}]}}}}
)",
      events, quoted(options.module_name), group.size(), group.backend(), options.limits.first_bytes,
      options.limits.cap_bytes, reducer.has_rebuilt_buckets(), parameters, buckets,
      fmt::join(reducer.ready_order(), ", "), fmt::join(reducer.users(), ", "));
}

}  // namespace brigade::dist
