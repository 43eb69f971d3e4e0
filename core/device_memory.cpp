#include <brigade/core/device_memory.h>

#include <brigade/core/error.h>

#include <array>
#include <cstring>

namespace brigade {

namespace {

constinit std::array<DeviceMemory, kDeviceTypes> registered{};

}  // namespace

void register_device_memory(DeviceType type, const DeviceMemory& memory) noexcept {
  registered[static_cast<size_t>(type)] = memory;
}

const DeviceMemory& device_memory(Device device) {
  const DeviceMemory& memory = registered[static_cast<size_t>(device.type)];
  if (memory.allocate) return memory;
  throw DeviceError("no memory for " + to_string(device) + ": this program was built without " + name(device.type));
}

Allocation allocate_on(Device device, size_t bytes) {
  return device.type == DeviceType::CPU ? cpu_allocate(bytes) : device_memory(device).allocate(bytes, device);
}

void copy_bytes(void* to, Device to_device, const void* from, Device from_device, size_t bytes) {
  if (bytes == 0) return;
  const Device other = to_device.type == DeviceType::CPU ? from_device : to_device;
  if (other.type == DeviceType::CPU) {
    std::memcpy(to, from, bytes);
  } else {
    device_memory(other).copy(to, to_device, from, from_device, bytes);
  }
}

}  // namespace brigade
