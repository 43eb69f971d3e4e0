// The CUDA devices of this process, and settings of cuBLASLt and cuDNN.
#pragma once

#include <cstddef>
#include <string>

namespace brigade::cuda {

// --- The CUDA devices of this process.

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
// reported (error.h).
void synchronize();

// --- Settings of cuBLASLt and cuDNN for the whole process; they apply to later calls. Safe from any thread.

// Whether matrix products and convolutions of float32 may round their operands to TF32 (10 bits of
// fraction) for the tensor cores. Off until it is set. (PyTorch:
// torch.backends.cuda.matmul.allow_tf32 and torch.backends.cudnn.allow_tf32.)
bool allow_tf32() noexcept;
void set_allow_tf32(bool allow) noexcept;

// Whether convolutions use only algorithms that give the same bits each time. On until it is
// cleared. (PyTorch: torch.backends.cudnn.deterministic.)
bool deterministic_convolution() noexcept;
void set_deterministic_convolution(bool deterministic) noexcept;

// The most memory that one convolution may take from the allocator in addition to its tensors; 256
// MiB until it is set. With less, slower algorithms are used.
size_t convolution_workspace_limit() noexcept;
void set_convolution_workspace_limit(size_t bytes) noexcept;

}  // namespace brigade::cuda
