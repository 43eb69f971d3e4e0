// Devices are counted once, and the properties of each are read on first use; settings of libraries are atomics.
#include <brigade/core/cuda/device.h>

#include <brigade/core/cuda/error.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

namespace brigade::cuda {

// --- Devices are counted once, and the properties of each are read on first use.

namespace {

struct Found {
  int count = 0;
  std::string why_not;
};
const Found& found() {
  static const Found result = [] {
    Found f;
    if (const cudaError_t code = cudaGetDeviceCount(&f.count); code != cudaSuccess) {
      f.count = 0;
      f.why_not = cudaGetErrorString(code);
      cudaGetLastError();
    } else if (f.count == 0) {
      f.why_not = "there is no CUDA device";
    }
    return f;
  }();
  return result;
}

void check_index(int device) {
  if (device >= 0 && device < device_count()) return;
  if (device_count() == 0) throw DeviceError("there is no cuda:{}: {}", device, found().why_not);
  throw DeviceError("there is no cuda:{}: the last is cuda:{}", device, device_count() - 1);
}

}  // namespace

int device_count() noexcept { return found().count; }
std::string why_not_available() { return found().why_not; }

const DeviceProperties& properties(int device) {
  check_index(device);
  static std::mutex mutex;
  static std::map<int, std::unique_ptr<DeviceProperties>> known;
  const std::lock_guard lock(mutex);
  std::unique_ptr<DeviceProperties>& entry = known[device];
  if (!entry) {
    cudaDeviceProp p{};
    check(cudaGetDeviceProperties(&p, device), "cudaGetDeviceProperties");
    entry = std::make_unique<DeviceProperties>(
        DeviceProperties{p.name, p.major, p.minor, p.multiProcessorCount, p.totalGlobalMem, p.sharedMemPerBlockOptin});
  }
  return *entry;
}

int current_device() {
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  return device;
}

void set_device(int device) {
  check_index(device);
  check(cudaSetDevice(device), "cudaSetDevice");
}

DeviceGuard::DeviceGuard(int device) : before_(current_device()), changed_(before_ != device) {
  if (changed_) set_device(device);
}
DeviceGuard::~DeviceGuard() {
  if (changed_) cudaSetDevice(before_);
}

void synchronize() {
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  throw_reported(current_device());
}

// --- The settings of cuBLASLt and cuDNN as atomics: TF32, deterministic algorithms, workspace sizes.

namespace {

constinit std::atomic<bool> tf32{false};
constinit std::atomic<bool> deterministic_convolutions{true};
constinit std::atomic<size_t> convolution_workspace{size_t{256} << 20};

}  // namespace

bool allow_tf32() noexcept { return tf32; }
void set_allow_tf32(bool allow) noexcept { tf32 = allow; }

bool deterministic_convolution() noexcept { return deterministic_convolutions; }
void set_deterministic_convolution(bool deterministic) noexcept { deterministic_convolutions = deterministic; }

size_t convolution_workspace_limit() noexcept { return convolution_workspace; }
void set_convolution_workspace_limit(size_t bytes) noexcept { convolution_workspace = bytes; }

}  // namespace brigade::cuda
