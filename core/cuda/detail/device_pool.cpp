// Taking, splitting, merging and freeing blocks, and the report when a device is out of memory.
#include <brigade/core/cuda/detail/device_pool.h>

#include <brigade/core/cuda/detail/capture.h>
#include <brigade/core/cuda/device.h>
#include <brigade/core/cuda/error.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace brigade::cuda::detail {
namespace {

constexpr size_t kRound = 512;
constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kSmallLimit = kMiB;  // blocks up to this come from small segments
constexpr size_t kSmallSegment = 2 * kMiB;
constexpr size_t kLargeLimit = 10 * kMiB;
constexpr size_t kLargeSegment = 20 * kMiB;
constexpr size_t kSmallRest = kRound;  // a rest smaller than this stays with its block
constexpr size_t kLargeRest = kMiB;

size_t segment_bytes(size_t bytes) noexcept {
  if (bytes <= kSmallLimit) return kSmallSegment;
  if (bytes <= kLargeLimit) return kLargeSegment;
  return (bytes + kSmallSegment - 1) / kSmallSegment * kSmallSegment;
}

}  // namespace

std::string mib(uint64_t bytes) {
  const uint64_t tenths = (bytes * 10 + kMiB / 2) / kMiB;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " MiB";
}

bool DevicePool::BySize::operator()(const Block* a, const Block* b) const noexcept {
  if (a->graphs != b->graphs) return a->graphs < b->graphs;
  if (a->stream != b->stream) return std::less<>()(a->stream, b->stream);
  if (a->small != b->small) return a->small;
  if (a->bytes != b->bytes) return a->bytes < b->bytes;
  return std::less<>()(a->data, b->data);
}

Block* DevicePool::find(Block wanted) {
  const auto found = free_blocks_.lower_bound(&wanted);
  if (found == free_blocks_.end()) return nullptr;
  Block* const block = *found;
  if (block->graphs != wanted.graphs || block->stream != wanted.stream || block->small != wanted.small) return nullptr;
  // A huge block is not cut for a small request: it would be lost for the next huge one.
  if (!wanted.small && block->bytes >= wanted.bytes + kLargeSegment && wanted.bytes > kLargeLimit) return nullptr;
  free_blocks_.erase(found);
  return block;
}

Block* DevicePool::new_segment(const Block& wanted) {
  const size_t size = segment_bytes(wanted.bytes);
  void* data = nullptr;
  const cudaError_t code = cudaMalloc(&data, size);
  if (code == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return nullptr;
  }
  check(code, "cudaMalloc");
  ++stats_.blocks.system_calls;
  ++stats_.segments;
  stats_.bytes_reserved += size;
  if (wanted.graphs != 0) graph_bytes_[wanted.graphs] += size;
  auto* const block = new Block(wanted);
  block->data = static_cast<char*>(data);
  block->bytes = size;
  by_address_.emplace(block->data, block);
  return block;
}

void DevicePool::split(Block* block, size_t bytes) {
  const size_t rest = block->bytes - bytes;
  if (rest < (block->small ? kSmallRest : kLargeRest)) return;
  auto* const remainder = new Block{this, block->graphs, block->data + bytes, rest, block->stream, block->small};
  remainder->before = block;
  remainder->after = block->after;
  if (block->after) block->after->before = remainder;
  block->after = remainder;
  block->bytes = bytes;
  by_address_.emplace(remainder->data, remainder);
  free_blocks_.insert(remainder);
}

void DevicePool::count_in(const Block* block) {
  ++stats_.blocks.allocations;
  stats_.blocks.bytes_in_use += block->bytes;
  stats_.blocks.peak_bytes_in_use = std::max(stats_.blocks.peak_bytes_in_use, stats_.blocks.bytes_in_use);
  stats_.blocks.bytes_cached = stats_.bytes_reserved - stats_.blocks.bytes_in_use;
}

Block* DevicePool::take(size_t asked, cudaStream_t stream) {
  const MemPoolId graphs = pool_of(stream);
  const std::lock_guard lock(mutex_);
  const DeviceGuard guard(device_);
  const AllowUnsafeCalls allow;
  if (asked > (size_t{1} << 47)) out_of_memory(asked, graphs != 0);
  const size_t bytes = (asked + kRound - 1) / kRound * kRound;
  const Block wanted{this, graphs, nullptr, bytes, stream, bytes <= kSmallLimit};
  if (graphs == 0) check_waiting();
  Block* block = find(wanted);
  if (!block) block = new_segment(wanted);
  if (!block && graphs == 0) {
    // All that is free, also for other streams and of other sizes, goes back to the device.
    wait_for([](const Block&) { return true; });
    block = find(wanted);
    if (!block) {
      release_segments();
      block = new_segment(wanted);
    }
    if (block) ++stats_.retries;
  }
  if (!block) out_of_memory(asked, graphs != 0);
  split(block, bytes);
  block->in_use = true;
  count_in(block);
  return block;
}

void DevicePool::give_back(Block* block) {
  const std::lock_guard lock(mutex_);
  stats_.blocks.bytes_in_use -= block->bytes;
  stats_.blocks.bytes_cached = stats_.bytes_reserved - stats_.blocks.bytes_in_use;
  if (block->other_streams.empty()) {
    make_free(block);
    return;
  }
  ++stats_.waiting_blocks;
  if (!record_events(block)) captured_.push_back(block);
}

void DevicePool::make_free(Block* block) {
  block->in_use = false;
  const auto absorb = [this](Block* into, Block* other) {
    into->bytes += other->bytes;
    into->after = other->after;
    if (other->after) other->after->before = into;
    by_address_.erase(other->data);
    delete other;
  };
  if (Block* const next = block->after; next && !next->in_use) {
    free_blocks_.erase(next);
    absorb(block, next);
  }
  if (Block* const previous = block->before; previous && !previous->in_use) {
    free_blocks_.erase(previous);
    absorb(previous, block);
    block = previous;
  }
  free_blocks_.insert(block);
}

bool DevicePool::record_events(Block* block) {
  for (const Stream& stream : block->other_streams) {
    if (capture_of(stream.get()) != 0) return false;
  }
  for (const Stream& stream : std::exchange(block->other_streams, {})) {
    std::deque<Waiting>& waiting = waiting_[stream.get()];
    waiting.push_back({block});
    ++block->events;
    waiting.back().event.record(stream);
  }
  return true;
}

// Called when the first of a stream's events has passed.
void DevicePool::reach(std::deque<Waiting>& waiting) {
  Block* const block = waiting.front().block;
  waiting.pop_front();
  if (--block->events > 0) return;
  --stats_.waiting_blocks;
  make_free(block);
}

void DevicePool::check_waiting() {
  std::erase_if(captured_, [this](Block* block) { return record_events(block); });
  for (auto& [stream, waiting] : waiting_) {
    while (!waiting.empty() && waiting.front().event.query())
      reach(waiting);
  }
}

template <class MustWait>
void DevicePool::wait_for(MustWait must_wait) {
  check_waiting();
  for (auto& [stream, waiting] : waiting_) {
    // When the last of them has passed, so have all before it.
    const auto last =
        std::find_if(waiting.rbegin(), waiting.rend(), [&](const Waiting& entry) { return must_wait(*entry.block); });
    if (last == waiting.rend()) continue;
    last->event.synchronize();
    for (auto left = waiting.rend() - last; left > 0; --left)
      reach(waiting);
  }
}

void DevicePool::look_at_waiting() {
  const std::lock_guard lock(mutex_);
  const AllowUnsafeCalls allow;
  check_waiting();
}

void DevicePool::record_stream(const char* data, const Stream& stream) {
  const std::lock_guard lock(mutex_);
  auto found = by_address_.upper_bound(data);
  if (found == by_address_.begin()) return;
  Block* const block = (--found)->second;
  if (!block->in_use || data >= block->data + block->bytes || block->stream == stream.get()) return;
  if (std::find(block->other_streams.begin(), block->other_streams.end(), stream) == block->other_streams.end())
    block->other_streams.push_back(stream);
}

// `whole` must have left free_blocks_.
void DevicePool::release_segment(Block* whole) {
  check(cudaFree(whole->data), "cudaFree");
  by_address_.erase(whole->data);
  stats_.bytes_reserved -= whole->bytes;
  stats_.blocks.bytes_cached = stats_.bytes_reserved - stats_.blocks.bytes_in_use;
  --stats_.segments;
  delete whole;
}

void DevicePool::release_segments() {
  for (auto it = free_blocks_.begin(); it != free_blocks_.end();) {
    Block* const block = *it;
    // Graphs keep their segments; other segments may be partly in use.
    if (block->graphs != 0 || block->before || block->after) {
      ++it;
      continue;
    }
    it = free_blocks_.erase(it);
    release_segment(block);
  }
}

void DevicePool::empty() {
  const std::lock_guard lock(mutex_);
  const DeviceGuard guard(device_);
  const AllowUnsafeCalls allow;
  check_waiting();
  release_segments();
}

void DevicePool::dissolve(MemPoolId graphs) {
  const std::lock_guard lock(mutex_);
  if (graph_bytes_.erase(graphs) == 0) return;
  const DeviceGuard guard(device_);
  const AllowUnsafeCalls allow;
  wait_for([graphs](const Block& block) { return block.graphs == graphs; });
  std::vector<Block*> whole;
  for (const auto& [data, block] : by_address_) {
    if (block->graphs != graphs) continue;
    if (!block->in_use) free_blocks_.erase(block);
    block->graphs = 0;
    if (block->in_use) continue;
    if (block->before || block->after) {
      free_blocks_.insert(block);
    } else {
      whole.push_back(block);
    }
  }
  for (Block* const block : whole)
    release_segment(block);
}

DeviceAllocatorStats DevicePool::stats() const {
  const std::lock_guard lock(mutex_);
  DeviceAllocatorStats result = stats_;
  result.graph_pools = graph_bytes_.size();
  for (const auto& [pool, bytes] : graph_bytes_)
    result.graph_bytes_reserved += bytes;
  return result;
}

void DevicePool::reset_peak() {
  const std::lock_guard lock(mutex_);
  stats_.blocks.peak_bytes_in_use = stats_.blocks.bytes_in_use;
}

std::string DevicePool::summary() const {
  const std::lock_guard lock(mutex_);
  const DeviceGuard guard(device_);
  return "cuda:" + std::to_string(device_) + ": " + describe();
}

std::string DevicePool::describe() const {
  size_t device_free = 0;
  size_t device_total = 0;
  const bool known = cudaMemGetInfo(&device_free, &device_total) == cudaSuccess;
  size_t largest = 0;
  uint64_t of_graphs = 0;
  uint64_t used_by_graphs = 0;
  for (const auto& [data, block] : by_address_) {
    if (!block->in_use && block->graphs == 0) largest = std::max(largest, block->bytes);
    if (block->graphs == 0) continue;
    of_graphs += block->bytes;
    if (block->in_use) used_by_graphs += block->bytes;
  }
  std::string text = mib(stats_.blocks.bytes_in_use) + " are in use (at most " + mib(stats_.blocks.peak_bytes_in_use) +
                     " so far), " + mib(stats_.blocks.bytes_cached) + " are cached in " +
                     std::to_string(stats_.segments) + " segments (largest piece " + mib(largest) + "), " +
                     std::to_string(stats_.waiting_blocks) + " blocks wait for other streams";
  if (!graph_bytes_.empty()) {
    text += "; of this, CUDA graphs keep " + mib(of_graphs) + " in " + std::to_string(graph_bytes_.size()) +
            (graph_bytes_.size() == 1 ? " pool" : " pools") + " (" + mib(used_by_graphs) + " in use)";
  }
  if (known) text += "; of the device's " + mib(device_total) + ", " + mib(device_free) + " are free";
  return text;
}

void DevicePool::out_of_memory(size_t asked, bool capturing) const {
  throw OutOfMemoryError("out of memory on cuda:{}: asked for {}; {}{}", device_, mib(asked), describe(),
                         capturing ? "; a CUDA graph is being captured, and what is cached cannot go back to the "
                                     "device meanwhile: call empty_cache() before the capture"
                                   : "; use a smaller batch, checkpoint segments, or shard the optimizer's state");
}

}  // namespace brigade::cuda::detail
