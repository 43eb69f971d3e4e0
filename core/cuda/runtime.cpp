// Makes CUDA devices known to the core.
#include <brigade/core/cuda/allocator.h>
#include <brigade/core/cuda/device.h>
#include <brigade/core/cuda/error.h>
#include <brigade/core/cuda/pinned.h>
#include <brigade/core/device_runtime.h>

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

class StreamEvent final : public DeviceEvent {
 public:
  explicit StreamEvent(int index) : index_(index) {}
  void record() override { event_.record(current_stream(index_)); }
  void block() const override { event_.block(current_stream(index_)); }
  bool query() const override { return event_.query(); }
  void synchronize() const override { event_.synchronize(); }

 private:
  Event event_;
  int index_;
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
      // The source has to be ready, and stays untouched until it was read.
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

  std::unique_ptr<DeviceStream> new_stream(int index) const override {
    const DeviceGuard guard(index);
    return std::make_unique<SideStream>(Stream::create(true));
  }
  std::unique_ptr<DeviceEvent> new_event(int index) const override { return std::make_unique<StreamEvent>(index); }
};

const bool registered = [] {
  static const Runtime runtime;
  register_device_runtime(DeviceType::CUDA, runtime);
  return true;
}();

}  // namespace

}  // namespace brigade::cuda
