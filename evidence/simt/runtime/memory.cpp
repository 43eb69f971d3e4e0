// Memory of the CUDA runtime: heap memory with device alignment, filled with 0xff (NaN) so that reads of unwritten
// memory show, and of exactly the requested size, so that the address sanitizer knows where it ends.
#include "memory.h"

#include "capture.h"
#include "scheduler.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <numeric>

using namespace simt::runtime;

namespace {

constexpr size_t kAlignment = 256;

struct Allocation {
  size_t bytes = 0;
  MemoryKind kind = MemoryKind::Device;
  int device = 0;
  unsigned flags = 0;
  bool registered = false;  // by cudaHostRegister: not freed here
};

std::map<uintptr_t, Allocation>& allocations() {
  static auto* const all = new std::map<uintptr_t, Allocation>;
  return *all;
}

std::array<size_t, simt::kDevices> capacity = [] {
  std::array<size_t, simt::kDevices> bytes{};
  bytes.fill(size_t{1} << 30);
  return bytes;
}();

uintptr_t number(const void* address) { return reinterpret_cast<uintptr_t>(address); }

size_t allocated(int device) {
  return std::accumulate(allocations().begin(), allocations().end(), size_t{0}, [=](size_t sum, const auto& entry) {
    const Allocation& allocation = entry.second;
    return sum + (allocation.kind == MemoryKind::Device && allocation.device == device ? allocation.bytes : 0);
  });
}

cudaError_t allocate(void** address, const Allocation& wanted) {
  if (address == nullptr) return set_last_error(cudaErrorInvalidValue);
  *address = nullptr;
  if (wanted.bytes == 0) return cudaSuccess;
  const Lock held = enter();
  if (const cudaError_t error = check_unsafe_call(); error != cudaSuccess) return set_last_error(error);
  const bool fits = wanted.kind == MemoryKind::Host ||
                    allocated(wanted.device) + wanted.bytes <= capacity[static_cast<size_t>(wanted.device)];
  if (!fits || posix_memalign(address, kAlignment, wanted.bytes) != 0) return set_last_error(cudaErrorMemoryAllocation);
  std::memset(*address, 0xff, wanted.bytes);
  allocations()[number(*address)] = wanted;
  return cudaSuccess;
}

// Waits for all queued commands. This does not hide a premature free: commands enqueued after it still use freed
// memory.
cudaError_t release(void* address, MemoryKind kind) {
  if (address == nullptr) return cudaSuccess;
  Lock held = enter();
  if (const cudaError_t error = check_unsafe_call(); error != cudaSuccess) return set_last_error(error);
  const auto found = allocations().find(number(address));
  if (found == allocations().end() || found->second.kind != kind || found->second.registered)
    return set_last_error(cudaErrorInvalidValue);
  const Allocation allocation = found->second;
  allocations().erase(found);
  for (int device = 0; device < simt::kDevices; ++device) {
    if (kind == MemoryKind::Host || device == allocation.device) drain_device(held, device);
  }
  std::memset(address, 0xff, allocation.bytes);
  std::free(address);
  throw_failure(held, allocation.device);
  return cudaSuccess;
}

}  // namespace

namespace simt {

void set_device_memory(int device, size_t bytes) {
  const Lock held = lock();
  capacity.at(static_cast<size_t>(device)) = bytes;
}

size_t allocated_bytes(int device) {
  const Lock held = lock();
  return allocated(device);
}

size_t live_objects() {
  const Lock held = lock();
  return state().live_handles + allocations().size();
}

}  // namespace simt

namespace simt::runtime {

Memory find_memory(const void* address) {
  auto after = allocations().upper_bound(number(address));
  if (after == allocations().begin()) return {};
  const auto& [begin, allocation] = *--after;
  const size_t offset = number(address) - begin;
  if (offset >= allocation.bytes) return {};
  return {allocation.kind, allocation.device, allocation.bytes - offset};
}

}  // namespace simt::runtime

extern "C" {

cudaError_t cudaMalloc(void** address, size_t bytes) {
  return allocate(address, {bytes, MemoryKind::Device, current_device(), 0, false});
}

cudaError_t cudaFree(void* address) { return release(address, MemoryKind::Device); }

cudaError_t cudaHostAlloc(void** address, size_t bytes, unsigned flags) {
  return allocate(address, {bytes, MemoryKind::Host, current_device(), flags, false});
}

cudaError_t cudaMallocHost(void** address, size_t bytes) { return cudaHostAlloc(address, bytes, cudaHostAllocDefault); }

cudaError_t cudaFreeHost(void* address) { return release(address, MemoryKind::Host); }

cudaError_t cudaHostRegister(void* address, size_t bytes, unsigned flags) {
  const Lock held = enter();
  if (address == nullptr || bytes == 0) return set_last_error(cudaErrorInvalidValue);
  if (find_memory(address).kind != MemoryKind::Unregistered)
    return set_last_error(cudaErrorHostMemoryAlreadyRegistered);
  allocations()[number(address)] = {bytes, MemoryKind::Host, current_device(), flags, true};
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* address) {
  const Lock held = enter();
  const auto found = allocations().find(number(address));
  if (found == allocations().end() || !found->second.registered)
    return set_last_error(cudaErrorHostMemoryNotRegistered);
  allocations().erase(found);
  return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void** device_address, void* address, unsigned) {
  const Lock held = enter();
  if (find_memory(address).kind != MemoryKind::Host) return set_last_error(cudaErrorInvalidValue);
  *device_address = address;
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  if (attributes == nullptr) return set_last_error(cudaErrorInvalidValue);
  const Lock held = lock();
  const Memory memory = find_memory(address);
  *attributes = {};
  attributes->device = memory.kind == MemoryKind::Unregistered ? -2 : memory.device;
  if (memory.kind == MemoryKind::Unregistered) return cudaSuccess;
  void* const plain = const_cast<void*>(address);
  attributes->type = memory.kind == MemoryKind::Device ? cudaMemoryTypeDevice : cudaMemoryTypeHost;
  attributes->devicePointer = plain;
  if (memory.kind == MemoryKind::Host) attributes->hostPointer = plain;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  const Lock held = lock();
  const int device = current_device();
  *total_bytes = capacity[static_cast<size_t>(device)];
  const size_t used = allocated(device);
  *free_bytes = used < *total_bytes ? *total_bytes - used : 0;
  return cudaSuccess;
}

}  // extern "C"
