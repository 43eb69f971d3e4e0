// Devices of the CUDA runtime: four small ones of compute capability 9.0.
#include "scheduler.h"

#include <simt/runtime.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <utility>

using namespace simt::runtime;

namespace {

constexpr int kMultiprocessors = 4;

thread_local int device_of_thread = 0;

std::array<std::atomic<size_t>, simt::kDevices> threads_on_device{};
thread_local std::array<bool, simt::kDevices> is_on_device{};

void make_context(int device) {
  const auto index = static_cast<size_t>(device);
  if (!std::exchange(is_on_device[index], true)) ++threads_on_device[index];
}

bool exists(int device) { return device >= 0 && device < simt::kDevices; }

size_t total_memory(int device) {
  const int before = std::exchange(device_of_thread, device);
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  cudaMemGetInfo(&free_bytes, &total_bytes);
  device_of_thread = before;
  return total_bytes;
}

}  // namespace

namespace simt::runtime {
int current_device() { return device_of_thread; }

Lock enter() {
  make_context(device_of_thread);
  return lock();
}
}  // namespace simt::runtime

namespace simt {
size_t threads_with_context(int device) { return threads_on_device.at(static_cast<size_t>(device)); }
}  // namespace simt

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = simt::kDevices;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (!exists(device)) return set_last_error(cudaErrorInvalidDevice);
  device_of_thread = device;
  make_context(device);  // since CUDA 12
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = device_of_thread;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (!exists(device)) return set_last_error(cudaErrorInvalidDevice);
  *properties = {};
  std::snprintf(properties->name, sizeof(properties->name), "Emulated device %d", device);
  properties->totalGlobalMem = total_memory(device);
  properties->sharedMemPerBlock = size_t{48} << 10;
  properties->sharedMemPerBlockOptin = size_t{227} << 10;
  properties->sharedMemPerMultiprocessor = size_t{228} << 10;
  properties->reservedSharedMemPerBlock = size_t{1} << 10;
  properties->regsPerBlock = 65536;
  properties->regsPerMultiprocessor = 65536;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->maxBlocksPerMultiProcessor = 32;
  const int block[3] = {1024, 1024, 64};
  const int grid[3] = {0x7fffffff, 65535, 65535};
  std::memcpy(properties->maxThreadsDim, block, sizeof(block));
  std::memcpy(properties->maxGridSize, grid, sizeof(grid));
  properties->totalConstMem = size_t{64} << 10;
  properties->major = 9;
  properties->minor = 0;
  properties->multiProcessorCount = kMultiprocessors;
  properties->textureAlignment = 512;
  properties->concurrentKernels = 1;
  properties->asyncEngineCount = 2;
  properties->unifiedAddressing = 1;
  properties->canMapHostMemory = 1;
  properties->streamPrioritiesSupported = 1;
  properties->memoryBusWidth = 512;
  properties->l2CacheSize = 1 << 20;
  properties->pciBusID = device + 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (!exists(device)) return set_last_error(cudaErrorInvalidDevice);
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = 1024; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = 48 << 10; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = 227 << 10; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = 228 << 10; break;
    case cudaDevAttrWarpSize: *value = 32; break;
    case cudaDevAttrMultiProcessorCount: *value = kMultiprocessors; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = 2048; break;
    case cudaDevAttrComputeCapabilityMajor: *value = 9; break;
    case cudaDevAttrComputeCapabilityMinor: *value = 0; break;
    case cudaDevAttrUnifiedAddressing: *value = 1; break;
    case cudaDevAttrMemoryPoolsSupported: *value = 0; break;
    case cudaDevAttrClockRate: *value = 1000000; break;
    case cudaDevAttrL2CacheSize: *value = 1 << 20; break;
    default: return set_last_error(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  if (!exists(device)) return set_last_error(cudaErrorInvalidDevice);
  std::snprintf(text, static_cast<size_t>(length), "0000:%02x:00.0", static_cast<unsigned>(device + 1));
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (!exists(device) || !exists(peer)) return set_last_error(cudaErrorInvalidDevice);
  *can = device != peer ? 1 : 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  return exists(peer) ? cudaSuccess : set_last_error(cudaErrorInvalidDevice);
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

}  // extern "C"
