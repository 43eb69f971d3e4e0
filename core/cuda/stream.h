// Streams and events.
//
// Kernels go to the current stream of their tensor's device, which is a property of the thread: the
// device's default stream unless a StreamGuard says otherwise.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

namespace brigade::cuda {

// Cheap to copy. When the last copy of a created stream goes, the stream is kept for the next
// create(): blocks of the allocator are bound to it, and a new stream with its old handle would not
// wait for its pending work.
class Stream {
 public:
  // A new stream of the current device that does not wait for the default stream.
  static Stream create(bool high_priority = false);
  static Stream default_stream(int device);
  // A stream that the caller owns and keeps alive.
  static Stream borrowed(cudaStream_t stream, int device);

  cudaStream_t get() const noexcept { return stream_; }
  int device() const noexcept { return device_; }
  // Throw CudaError, also if work queued earlier failed. synchronize() also throws the IndexError
  // that a kernel on the device reported (error.h).
  void synchronize() const;
  // Whether all queued work is done.
  bool query() const;
  bool operator==(const Stream& other) const noexcept { return stream_ == other.stream_ && device_ == other.device_; }

 private:
  Stream(cudaStream_t stream, int device, std::shared_ptr<void> owner) noexcept
      : stream_(stream), device_(device), owner_(std::move(owner)) {}

  cudaStream_t stream_;
  int device_;
  std::shared_ptr<void> owner_;
};

// The current stream of this thread for the device (-1: the current device).
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

// A point in a stream. Created at the first record, on that stream's device.
class Event {
 public:
  explicit Event(bool timed = false) noexcept : timed_(timed) {}
  ~Event();
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(const Stream& stream);
  // Makes work that is queued on `stream` from now on wait for the recorded point; does nothing if none was recorded.
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
