// The interface to devices other than the CPU for device-independent code: memory, copies, streams and events.
//
// A library for a type of device registers itself here (register_device_runtime). The CUDA library
// is loaded on first use, by device_runtime() or device_count(), since loading it costs a process
// start some 200 ms.
#pragma once

#include <brigade/core/allocator.h>
#include <brigade/core/device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace brigade {

// A work queue of a device, in addition to the current one.
class DeviceStream {
 public:
  virtual ~DeviceStream() = default;
  // For libraries of the device: a cudaStream_t.
  virtual void* handle() const noexcept = 0;

 private:
  friend class DeviceStreamGuard;
  virtual void enter() = 0;
  virtual void leave() noexcept = 0;
};

// RAII: makes `stream` the current one of this thread, so that work is queued there. Guards nest like scopes.
class DeviceStreamGuard {
 public:
  explicit DeviceStreamGuard(DeviceStream& stream) : stream_(stream) { stream_.enter(); }
  ~DeviceStreamGuard() { stream_.leave(); }
  DeviceStreamGuard(const DeviceStreamGuard&) = delete;
  DeviceStreamGuard& operator=(const DeviceStreamGuard&) = delete;

 private:
  DeviceStream& stream_;
};

// A point in a stream.
class DeviceEvent {
 public:
  virtual ~DeviceEvent() = default;
  // Records the point after all work that is queued on the current stream of its device.
  virtual void record() = 0;
  // Makes work that is queued on the current stream from now on wait for the recorded point.
  virtual void block() const = 0;
  // Whether the point was reached; true when none was recorded.
  virtual bool query() const = 0;
  virtual void synchronize() const = 0;
  // When the recorded point was reached, in nanoseconds of the host's steady clock, to within some ten microseconds; 0
  // if it was not reached yet, or if the event is not timed. Does not wait for work on the user's streams; not allowed
  // while the current stream is captured.
  virtual int64_t reached_at() const = 0;
};

// Work that is queued once and launched as often as wanted (core/cuda/graph.h says what such work may be).
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
  // Captures what `step` queues on the current device, without running it.
  virtual void capture(const std::function<void()>& step) = 0;
  virtual void replay() = 0;
};

// Called when a graph is about to be replayed, on the thread and with the current stream of the
// replay; the function that it returns is called once the replay is queued. If the hook throws,
// nothing is replayed.
using ReplayHook = std::function<std::function<void()>()>;

class DeviceRuntime {
 public:
  virtual ~DeviceRuntime() = default;
  // Never throws: 0 without a device or driver.
  virtual int count() const noexcept = 0;
  // Why there is no device; "" if there is one.
  virtual std::string why_not_available() const = 0;
  // "NVIDIA H200"
  virtual std::string name(int index) const = 0;
  // Identifies the device on the host, whatever its index in this process: "0000:1b:00.0".
  virtual std::string bus_id(int index) const = 0;
  // Sets the device for calls of this thread that name none.
  virtual void set_current(int index) const = 0;

  // Allocates in stream order. Throws OutOfMemoryError.
  virtual Allocation allocate(size_t bytes, int index) const = 0;
  // Host memory that the device copies from and to concurrently with the CPU.
  virtual Allocation allocate_pinned(size_t bytes) const = 0;
  // Copies between devices, or to and from the CPU, in the order of the current stream. If one side
  // is the CPU, the copy is complete on return.
  virtual void copy(void* to, Device to_device, const void* from, Device from_device, size_t bytes) const = 0;
  // Copies within a device or to and from host memory, queued on the current stream of `index`:
  // neither side may be touched before the copy is done, and the host's side must be pinned for it
  // to run concurrently with the CPU.
  virtual void copy_async(void* to, const void* from, size_t bytes, int index) const = 0;

  // Waits for all that is queued on any stream of `index`.
  virtual void synchronize(int index) const = 0;
  // Whether what is queued on the current stream of `index` goes into a graph instead of running.
  virtual bool is_capturing(int index) const = 0;
  // Registers `hook` with the graph that this thread captures: it is called at each replay, as long
  // as the graph holds the capture. One hook per owner, whatever it captures.
  virtual void on_replay(const void* owner, const ReplayHook& hook) const = 0;

  // A stream with priority over others.
  virtual std::unique_ptr<DeviceStream> new_stream(int index) const = 0;
  // `timed`: the event records its time.
  virtual std::unique_ptr<DeviceEvent> new_event(int index, bool timed = false) const = 0;
  virtual std::unique_ptr<DeviceGraph> new_graph() const = 0;
};

// Called from a static object of the device's library; `runtime` lives as long as the process.
void register_device_runtime(DeviceType type, const DeviceRuntime& runtime) noexcept;

// Throws DeviceError if this program was built without the device, its library could not be loaded,
// or there is no such device. The CPU has no runtime.
const DeviceRuntime& device_runtime(Device device);
// 0 where device_runtime() would throw; 1 for the CPU.
int device_count(DeviceType type) noexcept;
namespace cuda {
inline bool is_available() noexcept { return brigade::device_count(DeviceType::CUDA) > 0; }
}  // namespace cuda
// Why device_count() is 0, in words; "" when it is not.
std::string why_no_device(DeviceType type);
// Whether this program has a library for such devices, with or without a device for it.
bool is_built_with(DeviceType type) noexcept;

// The names of the devices whose library is loaded; loads none.
std::vector<std::string> loaded_devices();

// The device for process or thread number `local_rank` on this host: "cpu", "cuda" (the ranks are
// assigned to the devices round-robin), "cuda:1", or "auto": cuda if there is a device, else cpu.
// Throws ValueError for any other text, DeviceError if there is no such device.
Device choose_device(const std::string& text, int local_rank = 0);
// Sets the device for calls of this thread that name none. Does nothing for the CPU. Throws DeviceError.
void set_current_device(Device device);

// Allocates `bytes` on any device, the CPU included. Throws DeviceError, OutOfMemoryError.
Allocation allocate_on(Device device, size_t bytes);
// Copies from any device to any other; see DeviceRuntime::copy.
void copy_bytes(void* to, Device to_device, const void* from, Device from_device, size_t bytes);

namespace detail {
// Loads the library for `type` if this program has one and it is not loaded; false when there is
// none. Throws DeviceError when it cannot be loaded.
bool load_device_library(DeviceType type);
}  // namespace detail

}  // namespace brigade
