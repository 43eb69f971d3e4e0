// A cache of page-locked memory: blocks of 2^n bytes, reused once their events have passed.
#include <brigade/core/cuda/allocator.h>

#include <brigade/core/cuda/detail/capture.h>
#include <brigade/core/cuda/error.h>

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace brigade::cuda {
namespace {

struct PinnedBlock {
  void* data;
  size_t bytes;  // a power of two
  std::vector<Event> events = {};
  std::vector<detail::CaptureId> captures = {};  // of graphs whose replays use it
};

struct PinnedPool {
  std::mutex mutex;
  std::multimap<size_t, PinnedBlock*> free_blocks;
  std::unordered_map<const void*, PinnedBlock*> by_address;
  AllocatorStats stats;
};
// Never destroyed, like the other allocators.
PinnedPool& pool() {
  static auto* const instance = new PinnedPool;
  return *instance;
}

bool is_idle(PinnedBlock& block) {
  if (!block.captures.empty()) return false;
  std::erase_if(block.events, [](const Event& event) { return event.query(); });
  return block.events.empty();
}

void give_back(void*, void* context, size_t) {
  auto* const block = static_cast<PinnedBlock*>(context);
  PinnedPool& shared = pool();
  const std::lock_guard lock(shared.mutex);
  shared.stats.bytes_in_use -= block->bytes;
  shared.stats.bytes_cached += block->bytes;
  shared.free_blocks.emplace(block->bytes, block);
}

}  // namespace

Allocation pinned_allocate(size_t bytes) {
  if (bytes > (size_t{1} << 47)) {
    throw OutOfMemoryError(
        "out of page-locked memory: asked for {} bytes, more than an address space holds; check the sizes", bytes);
  }
  const size_t size = std::bit_ceil(std::max<size_t>(bytes, 512));
  PinnedPool& shared = pool();
  const std::lock_guard lock(shared.mutex);
  const detail::AllowUnsafeCalls allow;
  PinnedBlock* block = nullptr;
  const auto [first, last] = shared.free_blocks.equal_range(size);
  for (auto it = first; it != last && !block; ++it) {
    if (!is_idle(*it->second)) continue;
    block = it->second;
    shared.free_blocks.erase(it);
    shared.stats.bytes_cached -= size;
    break;
  }
  if (!block) {
    void* data = nullptr;
    const cudaError_t code = cudaHostAlloc(&data, size, cudaHostAllocPortable);
    if (code == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      throw OutOfMemoryError("out of page-locked memory: asked for {} bytes while {} are in use and {} are cached",
                             bytes, shared.stats.bytes_in_use, shared.stats.bytes_cached);
    }
    check(code, "cudaHostAlloc");
    ++shared.stats.system_calls;
    block = new PinnedBlock{data, size};
    shared.by_address.emplace(data, block);
  }
  ++shared.stats.allocations;
  shared.stats.bytes_in_use += size;
  shared.stats.peak_bytes_in_use = std::max(shared.stats.peak_bytes_in_use, shared.stats.bytes_in_use);
  return {block->data, block, &give_back};
}

void record_pinned(const void* data, const Stream& stream) {
  PinnedPool& shared = pool();
  const std::lock_guard lock(shared.mutex);
  const auto found = shared.by_address.find(data);
  if (found == shared.by_address.end()) return;
  if (const detail::CaptureId capture = detail::capture_of(stream.get()); capture != 0) {
    if (capture != detail::kBrokenCapture) found->second->captures.push_back(capture);
    return;
  }
  found->second->events.emplace_back();
  found->second->events.back().record(stream);
}

AllocatorStats pinned_allocator_stats() {
  PinnedPool& shared = pool();
  const std::lock_guard lock(shared.mutex);
  return shared.stats;
}

void pinned_empty_cache() {
  PinnedPool& shared = pool();
  const std::lock_guard lock(shared.mutex);
  const detail::AllowUnsafeCalls allow;
  std::erase_if(shared.free_blocks, [&](const auto& entry) {
    PinnedBlock* const block = entry.second;
    if (!is_idle(*block)) return false;
    check(cudaFreeHost(block->data), "cudaFreeHost");
    shared.stats.bytes_cached -= block->bytes;
    shared.by_address.erase(block->data);
    delete block;
    return true;
  });
}

void detail::release_pinned(CaptureId capture) noexcept {
  PinnedPool& shared = pool();
  const std::lock_guard lock(shared.mutex);
  for (const auto& [data, block] : shared.by_address)
    std::erase(block->captures, capture);
}

}  // namespace brigade::cuda
