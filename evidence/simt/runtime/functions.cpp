#include "functions.h"

#include "scheduler.h"

#include <map>
#include <utility>

using namespace simt::runtime;

namespace {

constexpr size_t kDefaultBytes = size_t{48} << 10;
constexpr int kMaximalBytes = 227 << 10;
constexpr int kThreadsOfMultiprocessor = 2048;

// Per device: raising a kernel's limit on one device does not raise it on another.
std::map<std::pair<int, const void*>, size_t>& limits() {
  static auto* const all = new std::map<std::pair<int, const void*>, size_t>;
  return *all;
}

}  // namespace

namespace simt::detail {

size_t dynamic_shared_limit(const void* kernel) {
  const Lock held = runtime::lock();
  const auto found = limits().find({current_device(), kernel});
  return found == limits().end() ? kDefaultBytes : found->second;
}

}  // namespace simt::detail

extern "C" {

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;  // hints
  if (kernel == nullptr) return set_last_error(cudaErrorInvalidDeviceFunction);
  if (value < 0 || value > kMaximalBytes) return set_last_error(cudaErrorInvalidValue);
  const Lock held = enter();
  limits()[{current_device(), kernel}] = static_cast<size_t>(value);
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel, int threads, size_t) {
  if (blocks == nullptr || kernel == nullptr || threads < 1 || threads > 1024)
    return set_last_error(cudaErrorInvalidValue);
  *blocks = kThreadsOfMultiprocessor / threads;
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* kernel, int threads,
                                                                   size_t shared_bytes, unsigned) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel, threads, shared_bytes);
}

}  // extern "C"
