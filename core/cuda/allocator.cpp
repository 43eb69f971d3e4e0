#include <brigade/core/cuda/allocator.h>

#include <brigade/core/cuda/device.h>
#include <brigade/core/cuda/error.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

namespace brigade::cuda {

namespace {

constexpr size_t kRound = 512;
constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kSmallLimit = kMiB;  // blocks up to this come from small segments
constexpr size_t kSmallSegment = 2 * kMiB;
constexpr size_t kLargeLimit = 10 * kMiB;
constexpr size_t kLargeSegment = 20 * kMiB;
constexpr size_t kSmallRest = kRound;  // a rest smaller than this stays with its block
constexpr size_t kLargeRest = kMiB;

struct Pool;

// A piece of a segment. Neighbours are linked, so that free ones can merge.
struct Block {
  Pool* pool;
  char* data;
  size_t bytes;
  cudaStream_t stream;
  bool small;
  bool in_use = false;
  size_t asked = 0;
  Block* before = nullptr;
  Block* after = nullptr;
  std::vector<Stream> other_streams = {};
};

struct BySize {
  bool operator()(const Block* a, const Block* b) const noexcept {
    if (a->stream != b->stream) return std::less<>()(a->stream, b->stream);
    if (a->small != b->small) return a->small;
    if (a->bytes != b->bytes) return a->bytes < b->bytes;
    return std::less<>()(a->data, b->data);
  }
};

struct Waiting {
  Block* block;
  std::vector<Event> events;
};

bool caching() noexcept {
  static const bool on = [] {
    const char* value = std::getenv("BRIGADE_CUDA_ALLOC");
    return !(value && std::strcmp(value, "system") == 0);
  }();
  return on;
}

std::string mib(uint64_t bytes) {
  const uint64_t tenths = (bytes * 10 + kMiB / 2) / kMiB;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " MiB";
}

size_t segment_bytes(size_t bytes) noexcept {
  if (bytes <= kSmallLimit) return kSmallSegment;
  if (bytes <= kLargeLimit) return kLargeSegment;
  return (bytes + kSmallSegment - 1) / kSmallSegment * kSmallSegment;
}

// The memory of one device.
struct Pool {
  explicit Pool(int index) : device(index) {}

  int device;
  std::mutex mutex;
  std::set<Block*, BySize> free_blocks;
  std::map<const char*, Block*> by_address;  // every block, in use or not
  std::vector<Waiting> waiting;
  DeviceAllocatorStats stats;

  Block* take(size_t asked, cudaStream_t stream);
  void give_back(Block* block);
  void record_stream(const char* data, const Stream& stream);
  void empty();
  std::string summary();

 private:
  Block* find(size_t bytes, cudaStream_t stream, bool small);
  Block* new_segment(size_t bytes, cudaStream_t stream, bool small);
  void split(Block* block, size_t bytes);
  void make_free(Block* block);
  void look_at_waiting(bool wait);
  void release_segments();
  void count_in(Block* block, size_t asked);
  [[noreturn]] void out_of_memory(size_t asked);
};

// Never destroyed: tensors in static objects are freed after any destructor that we could order.
Pool& pool_of(int device) {
  static std::mutex mutex;
  static auto* const pools = new std::map<int, Pool*>;
  const std::lock_guard lock(mutex);
  Pool*& pool = (*pools)[device];
  if (!pool) pool = new Pool(device);
  return *pool;
}

Block* Pool::find(size_t bytes, cudaStream_t stream, bool small) {
  Block key{this, nullptr, bytes, stream, small};
  const auto found = free_blocks.lower_bound(&key);
  if (found == free_blocks.end() || (*found)->stream != stream || (*found)->small != small) return nullptr;
  // A huge block is not cut for a small request: it would be lost for the next huge one.
  if (!small && (*found)->bytes >= bytes + kLargeSegment && bytes > kLargeLimit) return nullptr;
  Block* const block = *found;
  free_blocks.erase(found);
  return block;
}

Block* Pool::new_segment(size_t bytes, cudaStream_t stream, bool small) {
  const size_t size = segment_bytes(bytes);
  void* data = nullptr;
  const cudaError_t code = cudaMalloc(&data, size);
  if (code == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return nullptr;
  }
  check(code, "cudaMalloc");
  ++stats.blocks.system_calls;
  ++stats.segments;
  stats.bytes_reserved += size;
  auto* const block = new Block{this, static_cast<char*>(data), size, stream, small};
  by_address.emplace(block->data, block);
  return block;
}

void Pool::split(Block* block, size_t bytes) {
  const size_t rest = block->bytes - bytes;
  if (rest < (block->small ? kSmallRest : kLargeRest)) return;
  auto* const remainder = new Block{this, block->data + bytes, rest, block->stream, block->small};
  remainder->before = block;
  remainder->after = block->after;
  if (block->after) block->after->before = remainder;
  block->after = remainder;
  block->bytes = bytes;
  by_address.emplace(remainder->data, remainder);
  free_blocks.insert(remainder);
}

void Pool::count_in(Block* block, size_t asked) {
  block->in_use = true;
  block->asked = asked;
  ++stats.blocks.allocations;
  stats.blocks.bytes_in_use += block->bytes;
  stats.blocks.peak_bytes_in_use = std::max(stats.blocks.peak_bytes_in_use, stats.blocks.bytes_in_use);
  stats.blocks.bytes_cached = stats.bytes_reserved - stats.blocks.bytes_in_use;
}

Block* Pool::take(size_t asked, cudaStream_t stream) {
  const std::lock_guard lock(mutex);
  const DeviceGuard guard(device);
  if (asked > (size_t{1} << 47)) out_of_memory(asked);
  const size_t bytes = (asked + kRound - 1) / kRound * kRound;
  const bool small = bytes <= kSmallLimit;
  look_at_waiting(false);
  Block* block = find(bytes, stream, small);
  if (!block) block = new_segment(bytes, stream, small);
  if (!block) {
    // Whatever is free, of other streams and sizes too, goes back to the device.
    look_at_waiting(true);
    block = find(bytes, stream, small);
    if (!block) {
      release_segments();
      block = new_segment(bytes, stream, small);
    }
    if (!block) out_of_memory(asked);
    ++stats.retries;
  }
  split(block, bytes);
  count_in(block, asked);
  return block;
}

void Pool::give_back(Block* block) {
  const std::lock_guard lock(mutex);
  stats.blocks.bytes_in_use -= block->bytes;
  stats.blocks.bytes_cached = stats.bytes_reserved - stats.blocks.bytes_in_use;
  if (block->other_streams.empty()) {
    make_free(block);
    return;
  }
  Waiting entry{block, {}};
  for (const Stream& stream : block->other_streams) {
    entry.events.emplace_back();
    entry.events.back().record(stream);
  }
  block->other_streams.clear();
  waiting.push_back(std::move(entry));
  stats.waiting_blocks = waiting.size();
}

void Pool::make_free(Block* block) {
  block->in_use = false;
  const auto absorb = [this](Block* into, Block* other) {
    into->bytes += other->bytes;
    into->after = other->after;
    if (other->after) other->after->before = into;
    by_address.erase(other->data);
    delete other;
  };
  if (Block* const next = block->after; next && !next->in_use) {
    free_blocks.erase(next);
    absorb(block, next);
  }
  if (Block* const previous = block->before; previous && !previous->in_use) {
    free_blocks.erase(previous);
    absorb(previous, block);
    block = previous;
  }
  free_blocks.insert(block);
}

void Pool::look_at_waiting(bool wait) {
  std::erase_if(waiting, [&](Waiting& entry) {
    for (const Event& event : entry.events) {
      if (wait) {
        event.synchronize();
      } else if (!event.query()) {
        return false;
      }
    }
    make_free(entry.block);
    return true;
  });
  stats.waiting_blocks = waiting.size();
}

void Pool::record_stream(const char* data, const Stream& stream) {
  const std::lock_guard lock(mutex);
  auto found = by_address.upper_bound(data);
  if (found == by_address.begin()) return;
  Block* const block = (--found)->second;
  if (!block->in_use || data >= block->data + block->bytes || block->stream == stream.get()) return;
  if (std::find(block->other_streams.begin(), block->other_streams.end(), stream) == block->other_streams.end())
    block->other_streams.push_back(stream);
}

void Pool::release_segments() {
  for (auto it = free_blocks.begin(); it != free_blocks.end();) {
    Block* const block = *it;
    if (block->before || block->after) {  // a part of its segment is in use
      ++it;
      continue;
    }
    it = free_blocks.erase(it);
    check(cudaFree(block->data), "cudaFree");
    by_address.erase(block->data);
    stats.bytes_reserved -= block->bytes;
    --stats.segments;
    delete block;
  }
  stats.blocks.bytes_cached = stats.bytes_reserved - stats.blocks.bytes_in_use;
}

void Pool::empty() {
  look_at_waiting(false);
  release_segments();
}

std::string Pool::summary() {
  size_t device_free = 0;
  size_t device_total = 0;
  const bool known = cudaMemGetInfo(&device_free, &device_total) == cudaSuccess;
  size_t largest = 0;
  for (const Block* block : free_blocks)
    largest = std::max(largest, block->bytes);
  std::string text = mib(stats.blocks.bytes_in_use) + " are in use (at most " + mib(stats.blocks.peak_bytes_in_use) +
                     " so far), " + mib(stats.blocks.bytes_cached) + " are cached in " +
                     std::to_string(stats.segments) + " segments (largest piece " + mib(largest) + "), " +
                     std::to_string(waiting.size()) + " blocks wait for other streams";
  if (known) text += "; of the device's " + mib(device_total) + ", " + mib(device_free) + " are free";
  return text;
}

void Pool::out_of_memory(size_t asked) {
  throw OutOfMemoryError("out of memory on cuda:" + std::to_string(device) + ": asked for " + mib(asked) + "; " +
                         summary() + "; use a smaller batch, checkpoint segments, or shard the optimizer's state");
}

void give_back(void*, void* context, size_t) {
  auto* const block = static_cast<Block*>(context);
  try {
    block->pool->give_back(block);
  } catch (const Error&) {
    // At exit the driver may be gone; the process's memory goes with it.
  }
}

}  // namespace

Allocation allocate(size_t bytes, int device) {
  if (bytes == 0) return {};
  if (!caching()) {
    const DeviceGuard guard(device);
    void* data = nullptr;
    const cudaError_t code = cudaMalloc(&data, bytes);
    if (code == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      throw OutOfMemoryError("out of memory on cuda:" + std::to_string(device) + ": asked for " + mib(bytes) +
                             " with the cache turned off");
    }
    check(code, "cudaMalloc");
    return {data, nullptr, [](void* p, void*, size_t) { cudaFree(p); }};
  }
  Block* const block = pool_of(device).take(bytes, current_stream(device).get());
  return {block->data, block, &give_back};
}

void record_stream(const void* data, const Stream& stream) {
  if (data && caching()) pool_of(stream.device()).record_stream(static_cast<const char*>(data), stream);
}

DeviceAllocatorStats allocator_stats(int device) {
  Pool& pool = pool_of(device);
  const std::lock_guard lock(pool.mutex);
  return pool.stats;
}

void reset_peak_stats(int device) {
  Pool& pool = pool_of(device);
  const std::lock_guard lock(pool.mutex);
  pool.stats.blocks.peak_bytes_in_use = pool.stats.blocks.bytes_in_use;
}

std::string memory_summary(int device) {
  Pool& pool = pool_of(device);
  const std::lock_guard lock(pool.mutex);
  const DeviceGuard guard(device);
  return "cuda:" + std::to_string(device) + ": " + pool.summary();
}

void empty_cache() {
  for (int device = 0; device < device_count(); ++device) {
    Pool& pool = pool_of(device);
    const std::lock_guard lock(pool.mutex);
    const DeviceGuard guard(device);
    pool.empty();
  }
}

}  // namespace brigade::cuda
