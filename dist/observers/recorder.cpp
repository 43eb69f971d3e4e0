// Reads the clock at each event of a reducer.
#include <brigade/dist/observers/recorder.h>

#include <brigade/core/clock.h>
#include <brigade/dist/reducer/round.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace brigade::dist {

DeviceTimes::DeviceTimes(Device device)
    : began_(device_runtime(device).new_event(device.index, true)),
      compute_ended_(device_runtime(device).new_event(device.index, true)) {
  began_->record();
}

bool DeviceTimes::complete(RoundEvents& events) const {
  events.device_compute_ended = compute_ended_->reached_at();
  if (events.device_compute_ended == 0) return false;
  events.device_began = began_->reached_at();
  bool all = true;
  for (const auto& [index, work] : works_) {
    const DeviceSpan span = work->on_device();
    events.buckets[index].device_began = span.began;
    events.buckets[index].device_ended = span.ended;
    all = all && span.ended != 0;
  }
  return all;
}

void Recorder::on_forward() { forward_began_ = now_ns(); }

void Recorder::on_begin(const Round& round, const autograd::Plan*) {
  is_on_ = false;  // until all that follows is done: if some of it throws, the buckets still go
  if (!meter_ && !log_->timeline.was_asked_for()) return;
  const Buckets& buckets = round.buckets();
  events_ = {};
  events_.round = round.number();
  events_.forward_began = std::exchange(forward_began_, 0);
  events_.began = now_ns();
  events_.ready.assign(round.setup().parameters.size(), 0);
  device_times_.reset();
  for (uint32_t b = 0; b < buckets.size(); ++b) {
    const Payload& payload = buckets[b].payload;
    events_.buckets.emplace_back().bytes = static_cast<int64_t>(payload.whole().nbytes());
    if (payload.has_tail_on_host() && !round.setup().hook && !round.is_captured() && !device_times_)
      device_times_ = std::make_shared<DeviceTimes>(payload.whole().device());
  }
  is_on_ = true;
}

void Recorder::on_ready(const Round&, uint32_t parameter) {
  if (is_on_) events_.ready[parameter] = now_ns();
}

void Recorder::on_launch(const Round& round, uint32_t bucket) {
  if (!is_on_) return;
  BucketEvents& events = events_.buckets[bucket];
  events.launched = now_ns();
  for (const uint32_t parameter : round.buckets()[bucket].layout.parameters)
    events.filled = std::max(events.filled, events_.ready[parameter]);
  if (events.filled == 0) events.filled = events.launched;
}

void Recorder::on_computed(const Round&) {
  if (!is_on_) return;
  events_.compute_ended = now_ns();
  if (device_times_) device_times_->on_compute_end();
}

void Recorder::on_wait(const Round&, uint32_t bucket) {
  if (is_on_) events_.buckets[bucket].wait_began = now_ns();
}

void Recorder::on_reduced(const Round& round, uint32_t bucket, const WorkPtr& work) {
  if (!is_on_) return;
  BucketEvents& events = events_.buckets[bucket];
  events.finished = events.wait_ended = now_ns();
  if (round.setup().hook) return;  // what a hook sends is not the payload, and may be several collectives
  const WorkTimes times = work->times();
  events.arrived = times.arrived;
  events.reduced = times.reduced;
  if (device_times_ && round.buckets()[bucket].payload.has_tail_on_host()) device_times_->add(bucket, work);
}

void Recorder::on_finish(const Round& round) {
  if (!is_on_ || round.start().joined) return;
  const Buckets& buckets = round.buckets();
  events_.backward = round.where();
  events_.ended = now_ns();
  for (uint32_t b = 0; b < buckets.size(); ++b)
    events_.buckets[b].parameters = buckets[b].layout.parameters;
  events_.rebuilt = !buckets.is_rebuilt();
  const NonFinite* const found = meter_ ? &meter_->own_numbers().non_finite : nullptr;
  if (found && !found->op.empty()) events_.non_finite = fmt::format("{} at {}", found->op, to_string(found->place));
  Timeline::Complete complete;
  if (device_times_) complete = [times = device_times_](RoundEvents& events) { return times->complete(events); };
  is_on_ = false;
  log_->timeline.add(std::move(events_), std::move(complete));
}

}  // namespace brigade::dist
