// The timestamps of a backward that runs on a device. The host runs ahead of it, so they are read on request.
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
  // Starts now, on the current stream of `device`.
  explicit DeviceTimes(Device device);
  // Called when all nodes are queued on the current stream.
  void on_compute_end() { compute_ended_->record(); }
  void add(uint32_t bucket, WorkPtr work) { works_.emplace_back(bucket, std::move(work)); }

  // Implements Timeline::Complete. Never waits.
  bool complete(RoundEvents& events) const;

 private:
  std::unique_ptr<DeviceEvent> began_, compute_ended_;
  std::vector<std::pair<uint32_t, WorkPtr>> works_;
};

}  // namespace brigade::dist
