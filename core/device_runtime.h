// What the project needs of a device that is not the CPU, for code that is not about that device:
// memory, copies, streams and events.
//
// A library that knows a type of device makes itself known here (register_device_runtime). The CUDA
// library is loaded when it is first asked for, since that costs a process start some 200 ms: by
// device_runtime() and device_count().
#pragma once

#include <brigade/core/allocator.h>
#include <brigade/core/device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace brigade {

// A queue of work of a device, besides the one that is current.
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

// Makes `stream` the current one of this thread for a scope: what is queued goes there. They nest
// like scopes.
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
  // After all that is queued on the current stream of its device.
  virtual void record() = 0;
  // What is queued on the current stream from now on waits for the recorded point.
  virtual void block() const = 0;
  // Whether the point was reached; true when none was recorded.
  virtual bool query() const = 0;
  virtual void synchronize() const = 0;
  // When the recorded point was reached, in nanoseconds of the host's steady clock, to within some ten microseconds; 0
  // while it was not, and for an event without times. Waits for nothing that runs on a stream of the user's; not while
  // the current stream is captured.
  virtual int64_t reached_at() const = 0;
};

// Work that is queued once and launched as often as wanted (core/cuda/graph.h says what such work may be).
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
  // What `step` queues on the current device; nothing of it runs.
  virtual void capture(const std::function<void()>& step) = 0;
  virtual void replay() = 0;
};

// Called when a graph is about to be replayed, on the thread and with the current stream that
// replay it; what it returns is called once the replay is queued. Where it throws, nothing is
// replayed.
using ReplayHook = std::function<std::function<void()>()>;

class DeviceRuntime {
 public:
  virtual ~DeviceRuntime() = default;
  // Never throws: 0 without a device or driver.
  virtual int count() const noexcept = 0;
  // Why there is none; "" when there is one.
  virtual std::string why_not_available() const = 0;
  // "NVIDIA H200"
  virtual std::string name(int index) const = 0;
  // Which of the host's devices it is, whatever its number in this process: "0000:1b:00.0".
  virtual std::string bus_id(int index) const = 0;
  // The device that calls of this thread without a device go to.
  virtual void set_current(int index) const = 0;

  // In stream order. Throws OutOfMemoryError.
  virtual Allocation allocate(size_t bytes, int index) const = 0;
  // Memory of the host that the device copies from and to beside the CPU.
  virtual Allocation allocate_pinned(size_t bytes) const = 0;
  // Between devices, or to and from the CPU, in the order of what is queued on the current stream.
  // When one side is the CPU the bytes are there when it returns.
  virtual void copy(void* to, Device to_device, const void* from, Device from_device, size_t bytes) const = 0;
  // Within a device or to and from host memory, queued on the current stream of `index`: neither
  // side may be touched before it is done, and the host's side has to be pinned for it to run
  // beside the CPU.
  virtual void copy_async(void* to, const void* from, size_t bytes, int index) const = 0;

  // Waits for all that is queued on any stream of `index`.
  virtual void synchronize(int index) const = 0;
  // Whether what is queued on the current stream of `index` goes into a graph instead of running.
  virtual bool is_capturing(int index) const = 0;
  // Of the graph that this thread captures: `hook` hears of its replays, as long as it holds the
  // capture. One for each owner, whatever it captures.
  virtual void on_replay(const void* owner, const ReplayHook& hook) const = 0;

  // Before others where the device has to choose.
  virtual std::unique_ptr<DeviceStream> new_stream(int index) const = 0;
  // `timed`: one that keeps times.
  virtual std::unique_ptr<DeviceEvent> new_event(int index, bool timed = false) const = 0;
  virtual std::unique_ptr<DeviceGraph> new_graph() const = 0;
};

// From a static object of the library that knows the device; `runtime` lives as long as the
// process.
void register_device_runtime(DeviceType type, const DeviceRuntime& runtime) noexcept;

// Throws DeviceError: this program was built without it, its library could not be loaded, there is
// no such device. The CPU has none.
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

// The device of a process or thread that is number `local_rank` of those on this host: "cpu",
// "cuda" (the ranks take turns over the devices that there are), "cuda:1", or "auto": cuda when
// there is a device, else cpu. Throws ValueError for another text, DeviceError when it is not
// there.
Device choose_device(const std::string& text, int local_rank = 0);
// The device that calls of this thread without a device go to. Nothing for the CPU. Throws
// DeviceError.
void set_current_device(Device device);

// `bytes` on any device, the CPU included. Throws DeviceError, OutOfMemoryError.
Allocation allocate_on(Device device, size_t bytes);
// From any device to any other, see DeviceRuntime::copy.
void copy_bytes(void* to, Device to_device, const void* from, Device from_device, size_t bytes);

namespace detail {
// Loads the library for `type` if this program has one and it is not loaded; false when there is
// none. Throws DeviceError when it cannot be loaded.
bool load_device_library(DeviceType type);
}  // namespace detail

}  // namespace brigade
