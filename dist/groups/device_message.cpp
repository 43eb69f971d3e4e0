// Waits first for the host, then for the device.
#include <brigade/dist/groups/device_message.h>

#include <exception>
#include <utility>

namespace brigade::dist {

namespace {

class DeviceMessage final : public Work {
 public:
  DeviceMessage(WorkPtr posted, std::shared_ptr<DeviceTurn> turn)
      : posted_(std::move(posted)), turn_(std::move(turn)) {}

  bool is_completed() override {
    if (!posted_->is_completed()) return false;
    try {
      posted_->wait();
    } catch (const std::exception&) {
      return true;  // failed
    }
    return turn_->done->query();
  }
  void wait() override {
    posted_->wait();
    turn_->done->block();
  }
  void wait(std::chrono::milliseconds timeout) override {
    posted_->wait(timeout);
    turn_->done->block();
  }

 private:
  const WorkPtr posted_;
  const std::shared_ptr<DeviceTurn> turn_;
};

}  // namespace

DeviceTurn::DeviceTurn(Device device)
    : ready(device_runtime(device).new_event(device.index)), done(device_runtime(device).new_event(device.index)) {
  ready->record();
}

WorkPtr device_message(WorkPtr posted, std::shared_ptr<DeviceTurn> turn) {
  return std::make_shared<DeviceMessage>(std::move(posted), std::move(turn));
}

}  // namespace brigade::dist
