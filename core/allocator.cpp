// Size classes: 64, 128, 192, 256, then four steps per power of two. Each thread keeps a few small
// blocks per class for itself (no lock), chained through their first bytes; everything else goes
// through one mutex. A block's class follows from its size, so blocks carry no header and stay
// 64-byte aligned.
#include <brigade/core/allocator.h>
#include <brigade/core/detail/block_pool.h>
#include <brigade/core/error.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include <malloc.h>
#include <sys/mman.h>

namespace brigade {
namespace {

constexpr size_t kAlignment = 64;
constexpr int kClasses = 4 + 4 * 40;            // up to 256 << 40 bytes: more than any machine has
constexpr size_t kThreadBlockLimit = 32 << 10;  // larger blocks always go through the shared pool
constexpr int kThreadClasses = 4 + 4 * 7;       // up to kThreadBlockLimit
constexpr size_t kThreadBytes = 256 << 10;      // kept per thread and class
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

// Compute libraries (oneDNN) allocate their workspace with malloc in each call. Memory that free
// returns to the operating system in between comes back as page faults, so some of it is kept,
// unless the environment sets how much.
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

// Counts of a thread that are not in the shared counters yet: a shared counter costs more than the
// rest of a small allocation.
struct Pending {
  int64_t bytes_in_use;
  uint64_t allocations;
};
BRIGADE_INITIAL_EXEC constinit thread_local Pending pending{};
constexpr int64_t kTellEvery = 256 << 10;  // bytes

// Intentionally never destroyed: tensors in static objects are freed after any destructor that we
// could order.
struct Pool {
  std::mutex mutex;
  std::vector<void*> free_blocks[kClasses];
  Counters counters;
};
Pool& pool() {
  static Pool* const instance = new Pool;
  return *instance;
}

// Blocks that a thread keeps for itself while its AtThreadEnd exists; later frees use the shared pool.
struct ThreadBlocks {
  detail::FreeBlock* first[kThreadClasses];
  uint32_t count[kThreadClasses];
  enum class State : uint8_t { New, Keeps, Ended } state;
};
BRIGADE_INITIAL_EXEC constinit thread_local ThreadBlocks thread_blocks{};

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

void give_to_pool(void* data, int index) {
  Pool& shared = pool();
  std::lock_guard lock(shared.mutex);
  shared.free_blocks[index].push_back(data);
}
void* take_from_pool(int index) {
  Pool& shared = pool();
  std::lock_guard lock(shared.mutex);
  std::vector<void*>& blocks = shared.free_blocks[index];
  if (blocks.empty()) return nullptr;
  void* const data = blocks.back();
  blocks.pop_back();
  return data;
}

// Calls take(block, class) for each block that this thread keeps.
template <class Take>
void empty_thread_blocks(Take&& take) {
  for (int i = 0; i < kThreadClasses; ++i) {
    while (detail::FreeBlock* const block = thread_blocks.first[i]) {
      thread_blocks.first[i] = block->next;
      take(block, i);
    }
    thread_blocks.count[i] = 0;
  }
}

struct AtThreadEnd {
  ~AtThreadEnd() {
    thread_blocks.state = ThreadBlocks::State::Ended;
    tell_pending();
    empty_thread_blocks(give_to_pool);
  }
  void touch() noexcept { thread_blocks.state = ThreadBlocks::State::Keeps; }
};
thread_local AtThreadEnd at_thread_end;

// Called before a thread counts or keeps anything.
void prepare_thread() noexcept {
  if (thread_blocks.state == ThreadBlocks::State::New) at_thread_end.touch();
}

void count_in(size_t bytes) noexcept {
  ++pending.allocations;
  pending.bytes_in_use += static_cast<int64_t>(bytes);
  if (pending.bytes_in_use >= kTellEvery) [[unlikely]]
    tell_pending();
}
void count_out(size_t bytes) noexcept {
  pending.bytes_in_use -= static_cast<int64_t>(bytes);
  if (pending.bytes_in_use <= -kTellEvery) [[unlikely]]
    tell_pending();
}

void* from_system(size_t bytes) {
  pool().counters.system_calls.fetch_add(1, std::memory_order_relaxed);
  // Large blocks ask for huge pages: a page fault costs more than the first use of the page.
  const size_t alignment = bytes >= kHugePage ? kHugePage : kAlignment;
  void* data = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (!data) {
    throw OutOfMemoryError(
        "out of memory on the cpu: asked for {} bytes while {} are in use and {} are cached; use "
        "smaller tensors or a smaller batch",
        bytes, cpu_allocator_stats().bytes_in_use, cpu_allocator_stats().bytes_cached);
  }
  if (bytes >= kHugePage) madvise(data, bytes, MADV_HUGEPAGE);
  pool().counters.bytes_reserved.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  return data;
}

bool keep(void* data, int index, size_t bytes) noexcept {
  ThreadBlocks& mine = thread_blocks;
  if (index >= kThreadClasses || mine.count[index] * bytes >= kThreadBytes) return false;
  if (mine.state != ThreadBlocks::State::Keeps) [[unlikely]]
    return false;
  auto* const block = static_cast<detail::FreeBlock*>(data);
  block->next = mine.first[index];
  mine.first[index] = block;
  ++mine.count[index];
  return true;
}

[[gnu::noinline]] void free_by_pool(void* data, int index) {
  const size_t bytes = class_bytes(index);
  prepare_thread();
  count_out(bytes);
  if (!keep(data, index, bytes)) give_to_pool(data, index);
}

void free_cached(void* data, void* context, size_t) {
  const int index = static_cast<int>(reinterpret_cast<intptr_t>(context));
  const size_t bytes = class_bytes(index);
  if (!keep(data, index, bytes)) return free_by_pool(data, index);
  count_out(bytes);
}

void free_system(void* data, void*, size_t bytes) {
  prepare_thread();
  count_out(bytes);
  pool().counters.bytes_reserved.fetch_sub(static_cast<int64_t>(bytes == 0 ? kAlignment : bytes),
                                           std::memory_order_relaxed);
  std::free(data);
}

Allocation cached(void* data, int index) noexcept {
  count_in(class_bytes(index));
  return {data, reinterpret_cast<void*>(static_cast<intptr_t>(index)), &free_cached};
}

[[gnu::noinline]] Allocation allocate_by_pool(size_t bytes) {
  prepare_thread();
  if (bytes > (size_t{1} << 47)) {
    throw OutOfMemoryError(
        "out of memory on the cpu: asked for {} bytes, more than an address space holds; check the sizes", bytes);
  }
  if (!caching()) {
    void* const data = from_system(bytes == 0 ? kAlignment : bytes);
    count_in(bytes);
    return {data, nullptr, &free_system};
  }
  const int index = class_of(bytes);
  void* data = take_from_pool(index);
  if (!data) data = from_system(class_bytes(index));
  return cached(data, index);
}

}  // namespace

Allocation cpu_allocate(size_t bytes) {
  if (bytes <= kThreadBlockLimit) {
    const int index = class_of(bytes);
    ThreadBlocks& mine = thread_blocks;
    if (detail::FreeBlock* const block = mine.first[index]) [[likely]] {
      mine.first[index] = block->next;
      --mine.count[index];
      return cached(block, index);
    }
  }
  return allocate_by_pool(bytes);
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
  Pool& shared = pool();
  const auto release = [&](void* data, int index) {
    std::free(data);
    shared.counters.bytes_reserved.fetch_sub(static_cast<int64_t>(class_bytes(index)), std::memory_order_relaxed);
  };
  empty_thread_blocks(release);
  std::lock_guard lock(shared.mutex);
  for (int i = 0; i < kClasses; ++i) {
    for (void* data : shared.free_blocks[i])
      release(data, i);
    shared.free_blocks[i].clear();
  }
}

}  // namespace brigade
