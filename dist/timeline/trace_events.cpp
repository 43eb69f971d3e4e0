// Aligns the clocks of the ranks, and writes each round as begin, end and instant events.
#include <brigade/dist/timeline/trace_events.h>

#include <brigade/dist/errors/json.h>

#include <fmt/format.h>

#include <algorithm>

namespace brigade::dist {
namespace {

// Lanes of a rank. To a viewer a rank is a process and a lane is one of its threads.
enum Lane { kCompute, kReady, kSteps, kDevice };
constexpr const char* kLanes[] = {"compute", "gradients ready", "optimizer steps", "compute on the device"};

// Perfetto takes the thread whose number equals that of a process for the first thread of that process, whatever
// process the event names. So a lane's number is never that of a rank, and each number is used once: 100003 is lane 0
// of rank 3, 200003 its lane 1.
constexpr size_t kLaneStep = 100'000;
size_t thread_number(Lane lane, size_t rank) { return (static_cast<size_t>(lane) + 1) * kLaneStep + rank; }

// Exact, which a floating-point number need not be.
std::string microseconds(int64_t nanoseconds) {
  const int64_t magnitude = std::abs(nanoseconds);
  return fmt::format("{}{}.{:03}", nanoseconds < 0 ? "-" : "", magnitude / 1000, magnitude % 1000);
}

// When the collective ended: the moment that is most nearly the same on all ranks.
int64_t end_of(const BucketEvents& bucket) { return bucket.reduced > 0 ? bucket.reduced : bucket.finished; }

// The offset that converts times of `other` to times of `first`.
int64_t clock_offset(const RankTimeline& first, const RankTimeline& other) {
  if (first.clock == other.clock) return 0;
  std::vector<int64_t> differences;
  for (const RoundEvents& a : first.rounds) {
    for (const RoundEvents& b : other.rounds) {
      if (a.round != b.round) continue;
      for (size_t i = 0; i < std::min(a.buckets.size(), b.buckets.size()); ++i)
        differences.push_back(end_of(a.buckets[i]) - end_of(b.buckets[i]));
    }
  }
  if (differences.empty()) return 0;
  std::nth_element(differences.begin(), differences.begin() + static_cast<int64_t>(differences.size() / 2),
                   differences.end());
  return differences[differences.size() / 2];
}

// Bytes per nanosecond.
double bandwidth(int64_t bytes, int64_t nanoseconds) {
  return static_cast<double>(bytes) / static_cast<double>(std::max<int64_t>(1, nanoseconds));
}

// Writes the events of one rank.
class RankWriter {
 public:
  RankWriter(std::string& events, size_t rank, size_t ranks, int64_t shift, std::span<const std::string> parameters,
             std::string_view backend)
      : events_(events), rank_(rank), ranks_(ranks), shift_(shift), parameters_(parameters), backend_(backend) {}

  void name_lanes(bool has_device) {
    add("M", "process_name", fmt::format(R"("args": {{"name": "rank {}"}})", rank_));
    for (const Lane lane : {kCompute, kReady, kSteps, kDevice}) {
      if (lane == kDevice && !has_device) continue;
      add("M", "thread_name",
          fmt::format(R"("tid": {}, "args": {{"name": "{}"}})", thread_number(lane, rank_), kLanes[lane]));
    }
  }

  void write(const RoundEvents& round) {
    iteration_ = fmt::format(R"("iteration": {}, "backward": {})", round.round, json_string(to_string(round.backward)));
    if (round.forward_began > 0) slice(kCompute, "forward", round.forward_began, round.began, "");
    if (round.device_compute_ended > 0) {
      // The device's times are known only to within some microseconds.
      const int64_t began = std::max(round.device_began, device_ended_);
      device_ended_ = std::max(began, round.device_compute_ended);
      slice(kDevice, "backward on the device", began, device_ended_, "");
    }
    slice(kCompute, "backward", round.began, round.compute_ended,
          round.non_finite.empty() ? "" : fmt::format(R"(, "non_finite": {})", json_string(round.non_finite)));
    slice(kCompute, "wait for collectives", round.compute_ended, round.ended,
          fmt::format(R"(, "overlap": {:.4f}, "rebuilt": {})", round.overlap(), round.rebuilt));
    for (size_t b = 0; b < round.buckets.size(); ++b)
      write(round.buckets[b], b);
    for (const StepEvents& step : round.steps)
      write(step);
    std::vector<std::pair<int64_t, size_t>> ready;
    for (size_t parameter = 0; parameter < round.ready.size(); ++parameter) {
      if (round.ready[parameter] != 0) ready.emplace_back(round.ready[parameter], parameter);
    }
    std::sort(ready.begin(), ready.end());
    for (const auto& [time, parameter] : ready) {
      add("i", parameters_[parameter],
          fmt::format(R"("s": "t", "tid": {}, "ts": {}, "args": {{{}}})", thread_number(kReady, rank_), at(time),
                      iteration_));
    }
  }

 private:
  std::string at(int64_t time) const { return microseconds(time + shift_); }

  void add(const char* phase, std::string_view name, const std::string& rest) {
    events_ += fmt::format(R"({}{{"name": {}, "ph": "{}", "pid": {}, {}}})", events_.empty() ? "\n  " : ",\n  ",
                           json_string(name), phase, rank_, rest);
  }

  void slice(Lane lane, const char* name, int64_t begin, int64_t end, const std::string& arguments) {
    add("B", name,
        fmt::format(R"("tid": {}, "ts": {}, "args": {{{}{}}})", thread_number(lane, rank_), at(begin), iteration_,
                    arguments));
    add("E", name, fmt::format(R"("tid": {}, "ts": {})", thread_number(lane, rank_), at(end)));
  }

  // For bucket `b`; events with the same id nest. The id is local to the rank: a plain "id" would be shared by the
  // whole trace, and Perfetto would draw the buckets of all ranks together, under none of them.
  void asynchronous(const char* phase, std::string_view name, size_t b, int64_t time, const std::string& arguments,
                    const char* category = "collective") {
    const size_t track = category == std::string_view("collective") ? 0 : 1;
    add(phase, name,
        fmt::format(R"("tid": {}, "cat": "{}", "id2": {{"local": "{:#x}"}}, "ts": {}, "args": {{{}}})",
                    thread_number(kCompute, rank_), category, (track << 20) + b + 1, at(time), arguments));
  }

  void write(const BucketEvents& bucket, size_t b) {
    std::string names;
    for (const uint32_t parameter : bucket.parameters)
      names += (names.empty() ? "" : ", ") + json_string(parameters_[parameter]);
    const std::string name = fmt::format("bucket {}", b);
    asynchronous(
        "b", name, b, bucket.launched,
        fmt::format(R"({}, "bucket": {}, "bytes": {}, "algorithm": "all_reduce over {}", "arrival_known": {}, )"
                    R"("on_device": {}, "filled_us": {}, "wait_began_us": {}, "wait_ended_us": {}, "parameters": [{}])",
                    iteration_, b, bucket.bytes, backend_, bucket.arrived > 0, bucket.device_ended > 0,
                    at(bucket.filled), at(bucket.wait_began), at(bucket.wait_ended), names));
    // A clock that jumps, or one that ranks share only approximately, must not break the nesting.
    const int64_t arrived = std::clamp(bucket.arrived, bucket.launched, bucket.finished);
    if (bucket.arrived > 0) {
      asynchronous("b", "wait for peers", b, bucket.launched, fmt::format(R"({}, "bucket": {})", iteration_, b));
      asynchronous("e", "wait for peers", b, arrived, "");
    }
    if (bucket.arrived > 0 && bucket.reduced > 0) {
      const int64_t reduced = std::clamp(bucket.reduced, arrived, bucket.finished);
      asynchronous("b", "reduce", b, arrived,
                   fmt::format(R"({}, "bucket": {}, {})", iteration_, b, speed(bucket, reduced - arrived)));
      asynchronous("e", "reduce", b, reduced, "");
    }
    asynchronous("e", name, b, bucket.finished, "");
    if (bucket.device_ended > 0) write_on_device(bucket, b);
  }

  std::string speed(const BucketEvents& bucket, int64_t nanoseconds) const {
    const double algorithm = bandwidth(bucket.bytes, nanoseconds);
    const auto n = static_cast<double>(ranks_);
    return fmt::format(R"("bytes": {}, "algbw_GBps": {:.6g}, "busbw_GBps": {:.6g})", bucket.bytes, algorithm,
                       algorithm * 2 * (n - 1) / n);
  }

  // By then the host has moved on.
  void write_on_device(const BucketEvents& bucket, size_t b) {
    constexpr const char* kCategory = "collective on a device";
    const std::string name = fmt::format("bucket {} on the device", b);
    asynchronous(
        "b", name, b, bucket.device_began,
        fmt::format(R"({}, "bucket": {}, {})", iteration_, b, speed(bucket, bucket.device_ended - bucket.device_began)),
        kCategory);
    asynchronous("e", name, b, std::max(bucket.device_began, bucket.device_ended), "", kCategory);
  }

  void write(const StepEvents& step) {
    const std::string scaled = step.loss_scale == 0
                                   ? ""
                                   : fmt::format(R"(, "loss_scale": {}, "found_inf": {}, "skipped": {})",
                                                 step.loss_scale, step.found_inf, step.skipped);
    add("i", step.optimizer + (step.skipped ? ".step() skipped" : ".step()"),
        fmt::format(R"("s": "t", "tid": {}, "ts": {}, "args": {{{}, "optimizer": {}, "step": {}, "where": {}{}}})",
                    thread_number(kSteps, rank_), at(step.at), iteration_, json_string(step.optimizer), step.number,
                    json_string(to_string(step.where)), scaled));
  }

  std::string& events_;
  size_t rank_;
  size_t ranks_;
  int64_t shift_;  // converts times of this rank's clock to times of the trace
  std::span<const std::string> parameters_;
  std::string_view backend_;
  std::string iteration_;     // event arguments that identify the round
  int64_t device_ended_ = 0;  // of the previous backward
};

}  // namespace

std::string trace_events(std::span<const RankTimeline> ranks, std::span<const std::string> parameters,
                         std::string_view backend) {
  int64_t origin = 0;
  std::vector<int64_t> offsets;
  for (const RankTimeline& rank : ranks) {
    offsets.push_back(clock_offset(ranks[0], rank));
    for (const RoundEvents& round : rank.rounds) {
      const int64_t begin = (round.forward_began > 0 ? round.forward_began : round.began) + offsets.back();
      origin = origin == 0 ? begin : std::min(origin, begin);
    }
  }
  std::string events;
  for (size_t r = 0; r < ranks.size(); ++r) {
    RankWriter writer(events, r, ranks.size(), offsets[r] - origin, parameters, backend);
    writer.name_lanes(
        std::ranges::any_of(ranks[r].rounds, [](const RoundEvents& round) { return round.device_compute_ended > 0; }));
    for (const RoundEvents& round : ranks[r].rounds)
      writer.write(round);
  }
  return "[" + events + "\n]";
}

}  // namespace brigade::dist
