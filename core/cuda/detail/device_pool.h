// The memory of one CUDA device: segments, and the blocks that they are cut into. See
// core/cuda/allocator.h for the rules.
#pragma once

#include <brigade/core/cuda/allocator.h>

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace brigade::cuda::detail {

class DevicePool;

// A piece of a segment. Neighbours are linked, so that free ones can merge.
struct Block {
  DevicePool* pool;
  MemPoolId graphs;  // whose memory it is: that of graphs that share a pool, or everybody's (0)
  char* data;
  size_t bytes;
  cudaStream_t stream;
  bool small;
  bool in_use = false;
  Block* before = nullptr;
  Block* after = nullptr;
  std::vector<Stream> other_streams = {};
};

class DevicePool {
 public:
  explicit DevicePool(int device) : device_(device) {}

  // For the stream; from the pool of its graph while it is being captured. Throws OutOfMemoryError.
  Block* take(size_t asked, cudaStream_t stream);
  void give_back(Block* block);
  void record_stream(const char* data, const Stream& stream);
  void empty();
  // No graph uses the pool any more.
  void dissolve(MemPoolId graphs);
  // Frees what other streams have let go of.
  void look_at_waiting();

  DeviceAllocatorStats stats() const;
  void reset_peak();
  std::string summary() const;

 private:
  struct BySize {
    bool operator()(const Block* a, const Block* b) const noexcept;
  };
  // Given back, but used on other streams as well: until the events are reached. A stream that is
  // being captured cannot say when it is done: those of the block are asked once none of them is,
  // and there are no events before.
  struct Waiting {
    Block* block;
    std::vector<Event> events = {};
  };

  Block* find(Block wanted);
  Block* new_segment(const Block& wanted);
  void split(Block* block, size_t bytes);
  void count_in(const Block* block);
  void make_free(Block* block);
  template <class MustWait>
  void check_waiting(MustWait must_wait);
  void release_segments();
  void release_segment(Block* whole);
  std::string describe() const;
  [[noreturn]] void out_of_memory(size_t asked, bool capturing) const;

  int device_;
  mutable std::mutex mutex_;
  std::set<Block*, BySize> free_blocks_;
  std::map<const char*, Block*> by_address_;  // every block, in use or not
  std::vector<Waiting> waiting_;
  std::map<MemPoolId, uint64_t> graph_bytes_;  // reserved in the pools of graphs
  DeviceAllocatorStats stats_;
};

// "12.5 MiB"
std::string mib(uint64_t bytes);

}  // namespace brigade::cuda::detail
