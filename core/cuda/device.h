// The CUDA devices of this process.
#pragma once

#include <string>

namespace brigade::cuda {

// 0 if there is no device or no driver: never throws, so that a program built with CUDA runs on a machine without it.
int device_count() noexcept;
// Why there is none ("CUDA driver version is insufficient ..."); "" when there is one.
std::string why_not_available();

struct DeviceProperties {
  std::string name;
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  size_t total_memory = 0;  // bytes
  size_t shared_memory_per_block = 0;
};
// Queried once per device. Throws DeviceError, which names the last device, for a device that does not exist.
const DeviceProperties& properties(int device);

// The device that calls of this thread go to.
int current_device();
void set_device(int device);

// RAII: changes the current device for a scope.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int before_;
  bool changed_;
};

// Waits for everything on the current device. Throws CudaError, and the IndexError that a kernel
// reported (device_error.h).
void synchronize();

}  // namespace brigade::cuda
