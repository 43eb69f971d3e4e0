// Streams and events.
//
// Kernels go to the current stream of their tensor's device, which is a property of the thread: the
// device's default stream unless a StreamGuard says otherwise.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

namespace brigade::cuda {

// Cheap to copy. When the last copy of one that was made goes, the stream is kept for the next
// create(): blocks of the allocator are bound to it, and a new stream under its old name would not
// wait for what it still has to do.
class Stream {
 public:
  // A new stream of the current device that does not wait for the default stream.
  static Stream create(bool high_priority = false);
  static Stream default_stream(int device);
  // Somebody else's, who keeps it alive.
  static Stream borrowed(cudaStream_t stream, int device);

  cudaStream_t get() const noexcept { return stream_; }
  int device() const noexcept { return device_; }
  // Throw CudaError; also when something queued before failed. synchronize() throws IndexError that
  // a kernel on the device has found (device_error.h).
  void synchronize() const;
  // Whether all that was queued is done.
  bool query() const;
  bool operator==(const Stream& other) const noexcept { return stream_ == other.stream_ && device_ == other.device_; }

 private:
  Stream(cudaStream_t stream, int device, std::shared_ptr<void> owner) noexcept
      : stream_(stream), device_(device), owner_(std::move(owner)) {}

  cudaStream_t stream_;
  int device_;
  std::shared_ptr<void> owner_;
};

// Of this thread, for the device (-1: the current one).
Stream current_stream(int device = -1);

// Makes `stream` current for this thread, and its device the current one, for a scope.
class StreamGuard {
 public:
  explicit StreamGuard(Stream stream);
  ~StreamGuard();
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  Stream before_;
  int device_before_;
};

// A point in a stream. Made at the first record, on that stream's device.
class Event {
 public:
  explicit Event(bool timed = false) noexcept : timed_(timed) {}
  ~Event();
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(const Stream& stream);
  // What is queued on `stream` from now on waits for the recorded point; nothing when none was
  // recorded.
  void block(const Stream& stream) const;
  void synchronize() const;
  // Whether the recorded point was reached; true when none was recorded.
  bool query() const;
  // Milliseconds from `start` to this; both timed and reached.
  float elapsed_since(const Event& start) const;

 private:
  void destroy() noexcept;

  cudaEvent_t event_ = nullptr;
  int device_ = -1;
  bool timed_;
};

}  // namespace brigade::cuda
