// Registers CUDA devices with the core.
#include <brigade/core/cuda/allocator.h>
#include <brigade/core/cuda/detail/capture.h>
#include <brigade/core/cuda/device.h>
#include <brigade/core/cuda/error.h>
#include <brigade/core/cuda/graph.h>
#include <brigade/core/device_runtime.h>

#include <chrono>
#include <map>
#include <mutex>
#include <optional>

namespace brigade::cuda {
namespace {

class SideStream final : public DeviceStream {
 public:
  explicit SideStream(Stream stream) : stream_(std::move(stream)) {}
  void* handle() const noexcept override { return stream_.get(); }

 private:
  void enter() override { guard_.emplace(stream_); }
  void leave() noexcept override { guard_.reset(); }

  Stream stream_;
  std::optional<StreamGuard> guard_;
};

// A device reports the time of an event only relative to another event. So each device has an anchor event whose time
// on the host is known: recorded on a stream that does nothing else, and renewed when it is old, since clocks drift
// apart and a float has few digits.
class Anchors {
 public:
  int64_t moment_of(const Event& event, int index) {
    const std::lock_guard lock(mutex_);
    Anchor& anchor = anchors_[index];
    if (anchor.moment == 0 || now() - anchor.moment > kOld) renew(anchor, index);
    const double ms = event.elapsed_since(anchor.event);  // negative if the event came earlier
    return anchor.moment + static_cast<int64_t>(ms * 1e6);
  }

 private:
  static constexpr int64_t kOld = 1'000'000'000;
  struct Anchor {
    std::optional<Stream> stream;
    Event event{true};
    int64_t moment = 0;
  };

  static int64_t now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  static void renew(Anchor& anchor, int index) {
    const DeviceGuard guard(index);
    if (!anchor.stream) anchor.stream = Stream::create(true);
    const int64_t before = now();
    anchor.event.record(*anchor.stream);
    anchor.event.synchronize();
    anchor.moment = before + (now() - before) / 2;
  }

  std::mutex mutex_;
  std::map<int, Anchor> anchors_;
};

Anchors& anchors() {
  static auto* const all = new Anchors;  // never destroyed: the driver may be gone before
  return *all;
}

class StreamEvent final : public DeviceEvent {
 public:
  StreamEvent(int index, bool timed) : event_(timed), index_(index), timed_(timed) {}
  void record() override {
    event_.record(current_stream(index_));
    recorded_ = true;
  }
  int64_t reached_at() const override {
    return timed_ && recorded_ && event_.query() ? anchors().moment_of(event_, index_) : 0;
  }
  void block() const override { event_.block(current_stream(index_)); }
  bool query() const override { return event_.query(); }
  void synchronize() const override { event_.synchronize(); }

 private:
  Event event_;
  int index_;
  bool timed_, recorded_ = false;
};

class CapturedGraph final : public DeviceGraph {
 public:
  void capture(const std::function<void()>& step) override { graph_.capture(step); }
  void replay() override { graph_.replay(); }

 private:
  Graph graph_;
};

class Runtime final : public DeviceRuntime {
 public:
  int count() const noexcept override { return device_count(); }
  std::string why_not_available() const override { return cuda::why_not_available(); }
  std::string name(int index) const override { return properties(index).name; }
  std::string bus_id(int index) const override {
    char text[32] = {};
    check(cudaDeviceGetPCIBusId(text, sizeof text, index), "cudaDeviceGetPCIBusId");
    return text;
  }
  void set_current(int index) const override { set_device(index); }

  Allocation allocate(size_t bytes, int index) const override { return cuda::allocate(bytes, index); }
  Allocation allocate_pinned(size_t bytes) const override { return pinned_allocate(bytes); }

  void copy(void* to, Device to_device, const void* from, Device from_device, size_t bytes) const override {
    const bool host = to_device.type == DeviceType::CPU || from_device.type == DeviceType::CPU;
    const Device device = to_device.type == DeviceType::CPU ? from_device : to_device;
    const DeviceGuard guard(device.index);
    const Stream stream = current_stream(device.index);
    if (!host && to_device != from_device) {
      // The source must be ready, and must not change until it has been read.
      const Stream source = current_stream(from_device.index);
      Event ready;
      ready.record(source);
      ready.block(stream);
      check(cudaMemcpyPeerAsync(to, to_device.index, from, from_device.index, bytes, stream.get()),
            "cudaMemcpyPeerAsync");
      Event read;
      read.record(stream);
      read.block(source);
      return;
    }
    copy_async(to, from, bytes, device.index);
    if (host) stream.synchronize();
  }

  void copy_async(void* to, const void* from, size_t bytes, int index) const override {
    if (bytes == 0) return;
    const DeviceGuard guard(index);
    const Stream stream = current_stream(index);
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream.get()), "cudaMemcpyAsync");
    record_pinned(to, stream);
    record_pinned(from, stream);
  }

  void synchronize(int index) const override {
    const DeviceGuard guard(index);
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  bool is_capturing(int index) const override {
    const DeviceGuard guard(index);
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    check(cudaStreamIsCapturing(current_stream(index).get(), &status), "cudaStreamIsCapturing");
    return status != cudaStreamCaptureStatusNone;
  }

  void on_replay(const void* owner, const ReplayHook& hook) const override { detail::on_replay(owner, hook); }

  std::unique_ptr<DeviceStream> new_stream(int index) const override {
    const DeviceGuard guard(index);
    return std::make_unique<SideStream>(Stream::create(true));
  }
  std::unique_ptr<DeviceEvent> new_event(int index, bool timed) const override {
    return std::make_unique<StreamEvent>(index, timed);
  }
  std::unique_ptr<DeviceGraph> new_graph() const override { return std::make_unique<CapturedGraph>(); }
};

const bool registered = [] {
  static const Runtime runtime;
  register_device_runtime(DeviceType::CUDA, runtime);
  return true;
}();

}  // namespace
}  // namespace brigade::cuda
