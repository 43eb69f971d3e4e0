// A device runtime with a planted bug: streams do not wait for events.
#pragma once

#include <brigade/core/cuda/stream.h>
#include <brigade/core/device_runtime.h>

#include <atomic>
#include <memory>
#include <utility>

namespace brigade::test {

enum class Forgotten {
  Nothing,
  WaitsOfOthers,   // temporarily current streams do not wait for the thread's own
  WaitsOfCurrent,  // the thread's own stream does not wait for others
};

struct Waits {
  Forgotten forgotten = Forgotten::Nothing;
  cudaStream_t own = nullptr;
};
inline Waits& waits_of_thread() {
  thread_local Waits waits;
  return waits;
}
// Takes effect on this thread, whose own stream is the current one.
inline void forget_waits(Forgotten forgotten, Device device) {
  waits_of_thread() = {.forgotten = forgotten, .own = cuda::current_stream(device.index).get()};
}

class ForgetfulRuntime final : public DeviceRuntime {
 public:
  // Replaces the registered runtime during its lifetime; objects that it creates must not outlive it.
  ForgetfulRuntime() : real_(device_runtime(Device(kCUDA, 0))) { register_device_runtime(kCUDA, *this); }
  ~ForgetfulRuntime() override { register_device_runtime(kCUDA, real_); }
  ForgetfulRuntime(const ForgetfulRuntime&) = delete;
  ForgetfulRuntime& operator=(const ForgetfulRuntime&) = delete;

  // The number of waits left out so far, over all threads.
  int left_out() const noexcept { return left_out_; }

  int count() const noexcept override { return real_.count(); }
  std::string why_not_available() const override { return real_.why_not_available(); }
  std::string name(int index) const override { return real_.name(index); }
  std::string bus_id(int index) const override { return real_.bus_id(index); }
  void set_current(int index) const override { real_.set_current(index); }
  Allocation allocate(size_t bytes, int index) const override { return real_.allocate(bytes, index); }
  Allocation allocate_pinned(size_t bytes) const override { return real_.allocate_pinned(bytes); }
  void copy(void* to, Device to_device, const void* from, Device from_device, size_t bytes) const override {
    real_.copy(to, to_device, from, from_device, bytes);
  }
  void copy_async(void* to, const void* from, size_t bytes, int index) const override {
    real_.copy_async(to, from, bytes, index);
  }
  void synchronize(int index) const override { real_.synchronize(index); }
  bool is_capturing(int index) const override { return real_.is_capturing(index); }
  void on_replay(const void* owner, const ReplayHook& hook) const override { real_.on_replay(owner, hook); }
  std::unique_ptr<DeviceStream> new_stream(int index) const override { return real_.new_stream(index); }
  std::unique_ptr<DeviceGraph> new_graph() const override { return real_.new_graph(); }
  std::unique_ptr<DeviceEvent> new_event(int index, bool timed) const override {
    return std::make_unique<Event>(real_.new_event(index, timed), index, left_out_);
  }

 private:
  class Event final : public DeviceEvent {
   public:
    Event(std::unique_ptr<DeviceEvent> real, int index, std::atomic<int>& left_out)
        : real_(std::move(real)), index_(index), left_out_(left_out) {}
    void record() override { real_->record(); }
    void block() const override {
      Waits& waits = waits_of_thread();
      const bool is_own = cuda::current_stream(index_).get() == waits.own;
      if (waits.forgotten != (is_own ? Forgotten::WaitsOfCurrent : Forgotten::WaitsOfOthers)) return real_->block();
      ++left_out_;
    }
    bool query() const override { return real_->query(); }
    void synchronize() const override { real_->synchronize(); }
    int64_t reached_at() const override { return real_->reached_at(); }

   private:
    std::unique_ptr<DeviceEvent> real_;
    int index_;
    std::atomic<int>& left_out_;
  };

  const DeviceRuntime& real_;
  mutable std::atomic<int> left_out_{0};
};

}  // namespace brigade::test
