// The table of device runtimes by type, and the calls that go to the runtime of a given device.
#include <brigade/core/device_runtime.h>

#include <brigade/core/error.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstring>

namespace brigade {
namespace {

constinit std::array<std::atomic<const DeviceRuntime*>, kDeviceTypes> registered{};

const DeviceRuntime* find(DeviceType type) {
  const auto& entry = registered[static_cast<size_t>(type)];
  if (!entry.load(std::memory_order_acquire)) detail::load_device_library(type);
  return entry.load(std::memory_order_acquire);
}

std::string built_without(DeviceType type) {
  return std::string("this program was built without ") + name(type) + " (CMake: --preset " + name(type) + ")";
}

}  // namespace

void register_device_runtime(DeviceType type, const DeviceRuntime& runtime) noexcept {
  registered[static_cast<size_t>(type)].store(&runtime, std::memory_order_release);
}

const DeviceRuntime& device_runtime(Device device) {
  if (device.type == DeviceType::CPU) throw DeviceError("the cpu has no device runtime");
  const DeviceRuntime* runtime = find(device.type);
  const int count = runtime ? runtime->count() : 0;
  if (count == 0) throw DeviceError("there is no {}: {}", device, why_no_device(device.type));
  if (device.index < 0 || device.index >= count) {
    throw DeviceError("there is no {}: the last is {}:{}", device, name(device.type), count - 1);
  }
  return *runtime;
}

int device_count(DeviceType type) noexcept {
  if (type == DeviceType::CPU) return 1;
  try {
    const DeviceRuntime* runtime = find(type);
    return runtime ? runtime->count() : 0;
  } catch (const Error&) {
    return 0;
  }
}

std::string why_no_device(DeviceType type) {
  if (type == DeviceType::CPU) return "";
  try {
    const DeviceRuntime* runtime = find(type);
    return runtime ? runtime->why_not_available() : built_without(type);
  } catch (const Error& error) {
    return error.what();
  }
}

bool is_built_with(DeviceType type) noexcept {
  if (type == DeviceType::CPU) return true;
  try {
    return find(type) != nullptr;
  } catch (const Error&) {
    return true;  // it is there, and cannot be loaded
  }
}

std::vector<std::string> loaded_devices() {
  std::vector<std::string> names;
  for (const auto& entry : registered) {
    const DeviceRuntime* runtime = entry.load(std::memory_order_acquire);
    for (int i = 0; runtime && i < runtime->count(); ++i)
      names.push_back(runtime->name(i));
  }
  return names;
}

Device choose_device(const std::string& text, int local_rank) {
  const std::string cuda = name(kCUDA);
  if (text == name(kCPU) || (text == "auto" && device_count(kCUDA) == 0)) return kCPU;
  Device device(kCUDA, 0);
  if (text == "auto" || text == cuda) {
    const int count = device_count(kCUDA);
    device.index = static_cast<int16_t>(local_rank % std::max(count, 1));
  } else {
    const char* const end = text.data() + text.size();
    const size_t begin = std::min(text.size(), cuda.size() + 1);
    const auto [stopped, error] = std::from_chars(text.data() + begin, end, device.index);
    if (text.rfind(cuda + ":", 0) != 0 || error != std::errc() || stopped != end)
      throw ValueError("unknown device '{}'; known are auto, cpu, cuda and cuda:N", text);
  }
  device_runtime(device);  // throws when it is not there
  return device;
}

void set_current_device(Device device) {
  if (device.type != DeviceType::CPU) device_runtime(device).set_current(device.index);
}

Allocation allocate_on(Device device, size_t bytes) {
  return device.type == DeviceType::CPU ? cpu_allocate(bytes) : device_runtime(device).allocate(bytes, device.index);
}

void copy_bytes(void* to, Device to_device, const void* from, Device from_device, size_t bytes) {
  if (bytes == 0) return;
  const Device other = to_device.type == DeviceType::CPU ? from_device : to_device;
  if (other.type == DeviceType::CPU) {
    std::memcpy(to, from, bytes);
  } else {
    device_runtime(other).copy(to, to_device, from, from_device, bytes);
  }
}

}  // namespace brigade
