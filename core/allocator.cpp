// Size classes: 64, 128, 192, 256, then four steps per power of two. Each thread keeps a few small blocks per class for
// itself (no lock); everything else goes through one mutex. A block's class follows from its size, so blocks carry no
// header and stay 64-byte aligned.
#include <brigade/core/allocator.h>
#include <brigade/core/error.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <malloc.h>
#include <sys/mman.h>

namespace brigade {

namespace {

constexpr size_t kAlignment = 64;
constexpr int kClasses = 4 + 4 * 40;            // up to 256 << 40 bytes: more than any machine has
constexpr size_t kThreadBlockLimit = 32 << 10;  // larger blocks always go through the shared pool
constexpr size_t kThreadBytes = 256 << 10;      // that a thread keeps per class
constexpr size_t kHugePage = 2 << 20;

int class_of(size_t bytes) noexcept {
  if (bytes <= 256) return bytes == 0 ? 0 : static_cast<int>((bytes - 1) / 64);
  const int log = std::bit_width(bytes - 1) - 1;  // 2^log < bytes <= 2^(log+1)
  const size_t step = size_t{1} << (log - 2);
  const int quarter = static_cast<int>((bytes - 1 - (size_t{1} << log)) / step);
  return 4 + (log - 8) * 4 + quarter;
}

size_t class_bytes(int index) noexcept {
  if (index < 4) return (static_cast<size_t>(index) + 1) * 64;
  const int log = (index - 4) / 4 + 8;
  return (size_t{1} << log) + (static_cast<size_t>((index - 4) % 4) + 1) * (size_t{1} << (log - 2));
}

// Libraries that compute (oneDNN, Eigen) take their room from malloc in each call. What free gives back to the
// operating system in between comes back as page faults, so some of it stays, unless the environment says how much.
void keep_heap() noexcept {
#ifdef __GLIBC__
  for (const char* chosen : {"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"})
    if (std::getenv(chosen)) return;
  mallopt(M_MMAP_THRESHOLD, 8 << 20);
  mallopt(M_TRIM_THRESHOLD, 32 << 20);
#endif
}

bool caching() noexcept {
  static const bool on = [] {
    const char* value = std::getenv("BRIGADE_CPU_ALLOC");
    if (value && std::strcmp(value, "system") == 0) return false;
    keep_heap();
    return true;
  }();
  return on;
}

struct Counters {
  std::atomic<uint64_t> allocations{0}, system_calls{0}, peak{0};
  std::atomic<int64_t> bytes_in_use{0}, bytes_reserved{0};
};

// What a thread has counted by itself since it last told everybody: a shared counter costs more than the rest of a
// small allocation.
struct Pending {
  int64_t bytes_in_use;
  uint64_t allocations;
};
constinit thread_local Pending pending{};
constexpr int64_t kTellEvery = 256 << 10;  // bytes

// Intentionally never destroyed: tensors in static objects are freed after any destructor that we could order.
struct Pool {
  std::mutex mutex;
  std::vector<void*> free_blocks[kClasses];
  Counters counters;
};
Pool& pool() {
  static Pool* const instance = new Pool;
  return *instance;
}

struct ThreadCache {
  std::vector<void*> free_blocks[kClasses];
  ~ThreadCache();
};
// Set once the cache of the thread is gone, so that late frees use the shared pool.
thread_local bool thread_cache_gone = false;
thread_local ThreadCache thread_cache;

void tell_pending() noexcept {
  Counters& counters = pool().counters;
  const auto [bytes, allocations] = std::exchange(pending, Pending{});
  counters.allocations.fetch_add(allocations, std::memory_order_relaxed);
  const int64_t now = counters.bytes_in_use.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  uint64_t peak = counters.peak.load(std::memory_order_relaxed);
  while (now > static_cast<int64_t>(peak) &&
         !counters.peak.compare_exchange_weak(peak, static_cast<uint64_t>(now), std::memory_order_relaxed)) {
  }
}

void count_in(size_t bytes) noexcept {
  ++pending.allocations;
  pending.bytes_in_use += static_cast<int64_t>(bytes);
  if (pending.bytes_in_use >= kTellEvery) tell_pending();
}
void count_out(size_t bytes) noexcept {
  pending.bytes_in_use -= static_cast<int64_t>(bytes);
  if (pending.bytes_in_use <= -kTellEvery) tell_pending();
}

void give_to_pool(void* data, int index) {
  Pool& shared = pool();
  std::lock_guard lock(shared.mutex);
  shared.free_blocks[index].push_back(data);
}

ThreadCache::~ThreadCache() {
  thread_cache_gone = true;
  tell_pending();
  for (int i = 0; i < kClasses; ++i) {
    for (void* data : free_blocks[i])
      give_to_pool(data, i);
  }
}

void* from_system(size_t bytes) {
  pool().counters.system_calls.fetch_add(1, std::memory_order_relaxed);
  // Large blocks ask for huge pages: a page fault costs more than the first use of the page.
  const size_t alignment = bytes >= kHugePage ? kHugePage : kAlignment;
  void* data = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (!data) {
    throw OutOfMemoryError("out of memory on the cpu: asked for " + std::to_string(bytes) + " bytes while " +
                           std::to_string(cpu_allocator_stats().bytes_in_use) + " are in use and " +
                           std::to_string(cpu_allocator_stats().bytes_cached) +
                           " are cached; use smaller tensors or a smaller batch");
  }
  if (bytes >= kHugePage) madvise(data, bytes, MADV_HUGEPAGE);
  pool().counters.bytes_reserved.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  return data;
}

void free_cached(void* data, void* context, size_t) {
  const int index = static_cast<int>(reinterpret_cast<intptr_t>(context));
  const size_t bytes = class_bytes(index);
  count_out(bytes);
  if (bytes <= kThreadBlockLimit && !thread_cache_gone) {
    std::vector<void*>& mine = thread_cache.free_blocks[index];
    if (mine.size() < kThreadBytes / bytes) {
      mine.push_back(data);
      return;
    }
  }
  give_to_pool(data, index);
}

void free_system(void* data, void*, size_t bytes) {
  count_out(bytes);
  pool().counters.bytes_reserved.fetch_sub(static_cast<int64_t>(bytes == 0 ? kAlignment : bytes),
                                           std::memory_order_relaxed);
  std::free(data);
}

}  // namespace

Allocation cpu_allocate(size_t bytes) {
  if (!caching()) {
    void* data = from_system(bytes == 0 ? kAlignment : bytes);
    count_in(bytes);
    return {data, nullptr, &free_system};
  }
  if (bytes > (size_t{1} << 47)) {
    throw OutOfMemoryError("out of memory on the cpu: asked for " + std::to_string(bytes) +
                           " bytes, more than an address space holds; check the sizes");
  }
  const int index = class_of(bytes);
  const size_t rounded = class_bytes(index);
  void* data = nullptr;
  if (rounded <= kThreadBlockLimit && !thread_cache_gone && !thread_cache.free_blocks[index].empty()) {
    data = thread_cache.free_blocks[index].back();
    thread_cache.free_blocks[index].pop_back();
  } else {
    Pool& shared = pool();
    std::lock_guard lock(shared.mutex);
    if (!shared.free_blocks[index].empty()) {
      data = shared.free_blocks[index].back();
      shared.free_blocks[index].pop_back();
    }
  }
  if (!data) data = from_system(rounded);
  count_in(rounded);
  return {data, reinterpret_cast<void*>(static_cast<intptr_t>(index)), &free_cached};
}

AllocatorStats cpu_allocator_stats() {
  tell_pending();
  const Counters& counters = pool().counters;
  const int64_t in_use = std::max<int64_t>(0, counters.bytes_in_use.load());
  const int64_t cached = std::max<int64_t>(0, counters.bytes_reserved.load() - in_use);
  return {counters.allocations.load(), counters.system_calls.load(), static_cast<uint64_t>(in_use),
          static_cast<uint64_t>(cached), counters.peak.load()};
}

void cpu_allocator_empty_cache() {
  const auto release = [](std::vector<void*>(&lists)[kClasses]) {
    for (int i = 0; i < kClasses; ++i) {
      for (void* data : lists[i]) {
        std::free(data);
        pool().counters.bytes_reserved.fetch_sub(static_cast<int64_t>(class_bytes(i)), std::memory_order_relaxed);
      }
      lists[i].clear();
    }
  };
  release(thread_cache.free_blocks);
  Pool& shared = pool();
  std::lock_guard lock(shared.mutex);
  release(shared.free_blocks);
}

}  // namespace brigade
