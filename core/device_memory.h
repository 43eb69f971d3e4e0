// Memory of devices other than the CPU: a library that knows a device makes itself known here.
#pragma once

#include <brigade/core/allocator.h>
#include <brigade/core/device.h>

namespace brigade {

struct DeviceMemory {
  Allocation (*allocate)(size_t bytes, Device device);
  // Between devices, or to and from the CPU, in the order of what is queued on the current stream. When one side is the
  // CPU the bytes are there when it returns.
  void (*copy)(void* to, Device to_device, const void* from, Device from_device, size_t bytes);
};

// To be called before main, from a static object. Throws nothing.
void register_device_memory(DeviceType type, const DeviceMemory& memory) noexcept;
// Throws DeviceError when no library of this program knows the device.
const DeviceMemory& device_memory(Device device);

// `bytes` on any device, the CPU included. Throws DeviceError, OutOfMemoryError.
Allocation allocate_on(Device device, size_t bytes);
// From any device to any other, see DeviceMemory::copy.
void copy_bytes(void* to, Device to_device, const void* from, Device from_device, size_t bytes);

}  // namespace brigade
