// One memory pool per device, the pools that graphs share, and plain cudaMalloc on request.
#include <brigade/core/cuda/allocator.h>

#include <brigade/core/cuda/detail/capture.h>
#include <brigade/core/cuda/detail/device_pool.h>
#include <brigade/core/cuda/device.h>
#include <brigade/core/cuda/error.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace brigade::cuda {
namespace {

using detail::Block;
using detail::DevicePool;

bool caching() noexcept {
  static const bool on = [] {
    const char* value = std::getenv("BRIGADE_CUDA_ALLOC");
    return !(value && std::strcmp(value, "system") == 0);
  }();
  return on;
}

// Never destroyed: tensors in static objects are freed after any destructor that we could order.
DevicePool& device_pool(int device) {
  static std::mutex mutex;
  static auto* const pools = new std::map<int, DevicePool*>;
  const std::lock_guard lock(mutex);
  DevicePool*& pool = (*pools)[device];
  if (!pool) pool = new DevicePool(device);
  return *pool;
}

void give_back(void*, void* context, size_t) {
  auto* const block = static_cast<Block*>(context);
  try {
    block->pool->give_back(block);
  } catch (const Error&) {
    // At exit the driver may be gone; the process's memory goes with it.
  }
}

Allocation allocate_uncached(size_t bytes, int device) {
  const DeviceGuard guard(device);
  const detail::AllowUnsafeCalls allow;
  void* data = nullptr;
  const cudaError_t code = cudaMalloc(&data, bytes);
  if (code == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw OutOfMemoryError("out of memory on cuda:{}: asked for {} with the cache turned off", device,
                           detail::mib(bytes));
  }
  check(code, "cudaMalloc");
  return {data, nullptr, [](void* p, void*, size_t) {
            const detail::AllowUnsafeCalls allow_free;
            cudaFree(p);
          }};
}

// The number of graphs that use each pool.
struct PoolUsers {
  std::mutex mutex;
  std::map<MemPoolId, int> counts;
};
PoolUsers& pool_users() {
  static auto* const users = new PoolUsers;
  return *users;
}

}  // namespace

Allocation allocate(size_t bytes, int device) {
  if (bytes == 0) return {};
  const cudaStream_t stream = current_stream(device).get();
  // Memory that a graph uses outlives its tensors, so it always comes from a pool.
  if (!caching() && detail::pool_of(stream) == 0) return allocate_uncached(bytes, device);
  Block* const block = device_pool(device).take(bytes, stream);
  return {block->data, block, &give_back};
}

void record_stream(const void* data, const Stream& stream) {
  if (data) device_pool(stream.device()).record_stream(static_cast<const char*>(data), stream);
}

DeviceAllocatorStats allocator_stats(int device) { return device_pool(device).stats(); }
void reset_peak_stats(int device) { device_pool(device).reset_peak(); }
std::string memory_summary(int device) { return device_pool(device).summary(); }

void empty_cache() {
  for (int device = 0; device < device_count(); ++device)
    device_pool(device).empty();
}

MemPoolId new_mem_pool() noexcept {
  static std::atomic<MemPoolId> last = 0;
  return ++last;
}

namespace detail {

void retain_pool(MemPoolId pool) {
  {
    const std::lock_guard lock(pool_users().mutex);
    ++pool_users().counts[pool];
  }
  for (int device = 0; device < device_count(); ++device)
    device_pool(device).look_at_waiting();
}

void release_pool(MemPoolId pool) {
  {
    const std::lock_guard lock(pool_users().mutex);
    const auto found = pool_users().counts.find(pool);
    if (--found->second > 0) return;
    pool_users().counts.erase(found);
  }
  for (int device = 0; device < device_count(); ++device)
    device_pool(device).dissolve(pool);
}

}  // namespace detail

}  // namespace brigade::cuda
