// Reads the events of a backward on a device.
#include <brigade/dist/observers/device_times.h>

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

}  // namespace brigade::dist
