// Makes the memory of CUDA devices known to the core.
#include <brigade/core/cuda/allocator.h>
#include <brigade/core/cuda/device.h>
#include <brigade/core/cuda/error.h>
#include <brigade/core/device_memory.h>

namespace brigade::cuda {

namespace {

Allocation allocate_tensor(size_t bytes, Device device) {
  if (device_count() == 0)
    throw DeviceError("no memory for " + to_string(device) + ": " + why_not_available() + "; use the cpu");
  return allocate(bytes, device.index);
}

void copy(void* to, Device to_device, const void* from, Device from_device, size_t bytes) {
  const bool host = to_device.type == DeviceType::CPU || from_device.type == DeviceType::CPU;
  const Device device = to_device.type == DeviceType::CPU ? from_device : to_device;
  const DeviceGuard guard(device.index);
  const Stream stream = current_stream(device.index);
  if (!host && to_device != from_device) {
    // The source has to be ready, and stays untouched until it was read.
    const Stream source = current_stream(from_device.index);
    Event ready;
    ready.record(source);
    ready.block(stream);
    check(cudaMemcpyPeerAsync(to, to_device.index, from, from_device.index, bytes, stream.get()),
          "cudaMemcpyPeerAsync");
    Event read;
    read.record(stream);
    read.block(source);
    return;
  }
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream.get()), "cudaMemcpyAsync");
  if (host) stream.synchronize();
}

const bool registered = [] {
  register_device_memory(DeviceType::CUDA, {&allocate_tensor, &copy});
  return true;
}();

}  // namespace

}  // namespace brigade::cuda
