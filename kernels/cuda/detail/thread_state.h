// Per-thread state of a device: library handles and plans.
#pragma once

#include <brigade/core/cuda/device.h>
#include <brigade/core/cuda/error.h>

#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace brigade::kernels::cuda {

// RAII: allows allocations by this thread while a stream is being captured. Libraries allocate on first use; that
// memory is their own and not part of the graph.
class AllowDuringCapture {
 public:
  AllowDuringCapture() {
    brigade::cuda::check(cudaThreadExchangeStreamCaptureMode(&before_), "cudaThreadExchangeStreamCaptureMode");
  }
  ~AllowDuringCapture() { cudaThreadExchangeStreamCaptureMode(&before_); }
  AllowDuringCapture(const AllowDuringCapture&) = delete;
  AllowDuringCapture& operator=(const AllowDuringCapture&) = delete;

 private:
  cudaStreamCaptureMode before_ = cudaStreamCaptureModeRelaxed;
};

// This thread's T for a device, created at the first call with that device current. When the thread ends, the next
// thread that needs a T reuses it, since handles are slow to create. Never destroyed: the driver may be gone at exit.
template <class T>
T& of_this_thread(int device) {
  struct Idle {
    std::mutex mutex;
    std::map<int, std::vector<std::unique_ptr<T>>> by_device;
  };
  static auto* const idle = new Idle;
  struct Mine {
    std::map<int, std::unique_ptr<T>> by_device;
    ~Mine() {
      const std::lock_guard lock(idle->mutex);
      for (auto& [device, state] : by_device)
        idle->by_device[device].push_back(std::move(state));
    }
  };
  thread_local Mine mine;
  const auto found = mine.by_device.find(device);
  if (found != mine.by_device.end()) return *found->second;
  std::unique_ptr<T> state;
  {
    const std::lock_guard lock(idle->mutex);
    if (auto& left = idle->by_device[device]; !left.empty()) {
      state = std::move(left.back());
      left.pop_back();
    }
  }
  if (!state) {
    const brigade::cuda::DeviceGuard guard(device);
    const AllowDuringCapture allow;
    state = std::make_unique<T>();
  }
  return *(mine.by_device[device] = std::move(state));
}

}  // namespace brigade::kernels::cuda
