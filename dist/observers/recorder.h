// Records the timeline of the reduced backwards.
#pragma once

#include <brigade/dist/observers/device_times.h>
#include <brigade/dist/observers/wrapper_log.h>
#include <brigade/dist/reducer/observer.h>

#include <memory>

namespace brigade::dist {

class Recorder final : public ReducerObserver {
 public:
  explicit Recorder(std::shared_ptr<WrapperLog> log) noexcept : log_(std::move(log)) {}

  // Of the backward that runs.
  const RoundEvents& events() const noexcept { return events_; }

  void on_forward() override;
  void on_begin(const Round& round, const autograd::Plan* plan) override;
  void on_ready(const Round& round, uint32_t parameter) override;
  void on_launch(const Round& round, uint32_t bucket) override;
  void on_computed(const Round& round) override;
  void on_wait(const Round& round, uint32_t bucket) override;
  void on_reduced(const Round& round, uint32_t bucket, const WorkPtr& work) override;
  void on_finish(const Round& round) override;

 private:
  std::shared_ptr<WrapperLog> log_;
  RoundEvents events_;
  std::shared_ptr<DeviceTimes> device_times_;  // if a device runs the collectives
  int64_t forward_began_ = 0;
};

}  // namespace brigade::dist
