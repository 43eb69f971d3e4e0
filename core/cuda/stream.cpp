// The current stream of each thread and device, streams kept for reuse, and events.
#include <brigade/core/cuda/stream.h>

#include <brigade/core/cuda/device.h>
#include <brigade/core/cuda/error.h>

#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace brigade::cuda {
namespace {

// Per device; a device without an entry uses its default stream.
thread_local std::vector<Stream> current_streams;

// Never destroyed: streams in static objects are released after any destructor that we could order.
struct KeptStreams {
  std::mutex mutex;
  std::map<std::pair<int, bool>, std::vector<cudaStream_t>> idle;  // by device and priority
};
KeptStreams& kept_streams() {
  static auto* const streams = new KeptStreams;
  return *streams;
}

void make_current(const Stream& stream) {
  while (static_cast<int>(current_streams.size()) <= stream.device())
    current_streams.push_back(Stream::default_stream(static_cast<int>(current_streams.size())));
  current_streams[static_cast<size_t>(stream.device())] = stream;
}

}  // namespace

Stream Stream::create(bool high_priority) {
  const int device = current_device();
  const std::pair<int, bool> kind{device, high_priority};
  cudaStream_t stream = nullptr;
  {
    KeptStreams& kept = kept_streams();
    const std::lock_guard lock(kept.mutex);
    if (std::vector<cudaStream_t>& idle = kept.idle[kind]; !idle.empty()) {
      stream = idle.back();
      idle.pop_back();
    }
  }
  if (!stream) {
    int least = 0;
    int greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
    check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, high_priority ? greatest : least),
          "cudaStreamCreateWithPriority");
  }
  return Stream(stream, device, std::shared_ptr<void>(stream, [kind](void* s) {
                  KeptStreams& kept = kept_streams();
                  const std::lock_guard lock(kept.mutex);
                  kept.idle[kind].push_back(static_cast<cudaStream_t>(s));
                }));
}

Stream Stream::default_stream(int device) { return Stream(nullptr, device, nullptr); }
Stream Stream::borrowed(cudaStream_t stream, int device) { return Stream(stream, device, nullptr); }

void Stream::synchronize() const {
  const DeviceGuard guard(device_);
  check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  throw_reported(device_);
}

bool Stream::query() const {
  const DeviceGuard guard(device_);
  const cudaError_t code = cudaStreamQuery(stream_);
  if (code == cudaErrorNotReady) return false;
  check(code, "cudaStreamQuery");
  return true;
}

Stream current_stream(int device) {
  if (device < 0) device = current_device();
  return static_cast<size_t>(device) < current_streams.size() ? current_streams[static_cast<size_t>(device)]
                                                              : Stream::default_stream(device);
}

StreamGuard::StreamGuard(Stream stream) : before_(current_stream(stream.device())), device_before_(current_device()) {
  if (device_before_ != stream.device()) set_device(stream.device());
  make_current(stream);
}
StreamGuard::~StreamGuard() {
  make_current(before_);
  cudaSetDevice(device_before_);
}

Event::~Event() { destroy(); }
Event::Event(Event&& other) noexcept
    : event_(std::exchange(other.event_, nullptr)), device_(other.device_), timed_(other.timed_) {}
Event& Event::operator=(Event&& other) noexcept {
  if (this != &other) {
    destroy();
    event_ = std::exchange(other.event_, nullptr);
    device_ = other.device_;
    timed_ = other.timed_;
  }
  return *this;
}

void Event::destroy() noexcept {
  if (event_) cudaEventDestroy(event_);
  event_ = nullptr;
}

void Event::record(const Stream& stream) {
  const DeviceGuard guard(stream.device());
  if (event_ && device_ != stream.device()) destroy();
  if (!event_) {
    check(cudaEventCreateWithFlags(&event_, timed_ ? cudaEventDefault : cudaEventDisableTiming),
          "cudaEventCreateWithFlags");
    device_ = stream.device();
  }
  check(cudaEventRecord(event_, stream.get()), "cudaEventRecord");
}

void Event::block(const Stream& stream) const {
  if (!event_) return;
  const DeviceGuard guard(stream.device());
  check(cudaStreamWaitEvent(stream.get(), event_, 0), "cudaStreamWaitEvent");
}

void Event::synchronize() const {
  if (event_) check(cudaEventSynchronize(event_), "cudaEventSynchronize");
}

bool Event::query() const {
  if (!event_) return true;
  const cudaError_t code = cudaEventQuery(event_);
  if (code == cudaErrorNotReady) return false;
  check(code, "cudaEventQuery");
  return true;
}

float Event::elapsed_since(const Event& start) const {
  if (!event_ || !start.event_) throw ValueError("elapsed_since: both events have to be recorded first");
  float ms = 0;
  check(cudaEventElapsedTime(&ms, start.event_, event_), "cudaEventElapsedTime");
  return ms;
}

}  // namespace brigade::cuda
