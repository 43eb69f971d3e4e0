// Records the timeline of the reduced backwards.
#pragma once

#include <brigade/core/device_runtime.h>
#include <brigade/dist/observers/norm_meter.h>
#include <brigade/dist/observers/wrapper_log.h>
#include <brigade/dist/reducer/observer.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace brigade::dist {

// The timestamps of a backward that runs on a device. The host runs ahead of it, so they are read on request.
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

class Recorder final : public ReducerObserver {
 public:
  // `meter`: knows the first operation that was not finite. Null: records only if the timeline was asked for.
  Recorder(std::shared_ptr<WrapperLog> log, std::shared_ptr<const NormMeter> meter) noexcept
      : log_(std::move(log)), meter_(std::move(meter)) {}

  // Of the backward that runs.
  const RoundEvents& events() const noexcept { return events_; }

  void on_forward() override;
  void on_begin(const Round& round, const autograd::Plan* plan) override;
  bool hears_gradients() const override { return true; }
  void on_ready(const Round& round, uint32_t parameter) override;
  void on_launch(const Round& round, uint32_t bucket) override;
  void on_computed(const Round& round) override;
  void on_wait(const Round& round, uint32_t bucket) override;
  void on_reduced(const Round& round, uint32_t bucket, const WorkPtr& work) override;
  void on_finish(const Round& round) override;

 private:
  std::shared_ptr<WrapperLog> log_;
  std::shared_ptr<const NormMeter> meter_;
  RoundEvents events_;
  std::shared_ptr<DeviceTimes> device_times_;  // if a device runs the collectives
  int64_t forward_began_ = 0;
  bool is_on_ = false;
};

}  // namespace brigade::dist
