// The moments of a backward that a device runs: the host is ahead of it, so they are read when somebody asks for them.
#pragma once

#include <brigade/core/device_runtime.h>
#include <brigade/dist/groups/work.h>
#include <brigade/dist/timeline/timeline.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace brigade::dist {

class DeviceTimes {
 public:
  // Begins now, on the current stream of `device`.
  explicit DeviceTimes(Device device);
  // All nodes are queued on the current stream.
  void on_compute_end() { compute_ended_->record(); }
  void add(uint32_t bucket, WorkPtr work) { works_.emplace_back(bucket, std::move(work)); }

  // Timeline::Complete. Waits for nothing.
  bool complete(RoundEvents& events) const;

 private:
  std::unique_ptr<DeviceEvent> began_, compute_ended_;
  std::vector<std::pair<uint32_t, WorkPtr>> works_;
};

}  // namespace brigade::dist
