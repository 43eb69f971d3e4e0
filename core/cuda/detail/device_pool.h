// The memory of one CUDA device: segments, and the blocks that they are cut into. See
// core/cuda/allocator.h for the rules.
#pragma once

#include <brigade/core/cuda/allocator.h>

#include <deque>
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
  MemPoolId graphs;  // the pool of graphs that owns the memory; 0: anyone may use it
  char* data;
  size_t bytes;
  cudaStream_t stream;
  bool small;
  bool in_use = false;
  Block* before = nullptr;
  Block* after = nullptr;
  std::vector<Stream> other_streams = {};
  size_t events = 0;  // not reached yet, once the block is given back
};

class DevicePool {
 public:
  explicit DevicePool(int device) : device_(device) {}

  // Allocates for the stream; from its graph's pool while the stream is being captured. Throws OutOfMemoryError.
  Block* take(size_t asked, cudaStream_t stream);
  void give_back(Block* block);
  void record_stream(const char* data, const Stream& stream);
  void empty();
  // Called when no graph uses the pool any more.
  void dissolve(MemPoolId graphs);
  // Frees blocks that other streams do not use any more.
  void look_at_waiting();

  DeviceAllocatorStats stats() const;
  void reset_peak();
  std::string summary() const;

 private:
  struct BySize {
    bool operator()(const Block* a, const Block* b) const noexcept;
  };
  // A block that was given back, and an event on another stream that uses it.
  struct Waiting {
    Block* block;
    Event event{};
  };

  Block* find(Block wanted);
  Block* new_segment(const Block& wanted);
  void split(Block* block, size_t bytes);
  void count_in(const Block* block);
  void make_free(Block* block);
  // False while one of the block's streams is being captured: such a stream cannot report when it is done.
  bool record_events(Block* block);
  void reach(std::deque<Waiting>& waiting);
  // Frees blocks whose events are all reached.
  void check_waiting();
  // Waits for the blocks for which must_wait(block) holds, and frees them.
  template <class MustWait>
  void wait_for(MustWait must_wait);
  void release_segments();
  void release_segment(Block* whole);
  std::string describe() const;
  [[noreturn]] void out_of_memory(size_t asked, bool capturing) const;

  int device_;
  mutable std::mutex mutex_;
  std::set<Block*, BySize> free_blocks_;
  std::map<const char*, Block*> by_address_;  // every block, in use or not
  // Events of a stream are reached in the order of their records: only the first of each stream is queried.
  std::map<cudaStream_t, std::deque<Waiting>> waiting_;
  std::vector<Block*> captured_;               // blocks without events yet
  std::map<MemPoolId, uint64_t> graph_bytes_;  // reserved in the pools of graphs
  DeviceAllocatorStats stats_;
};

// "12.5 MiB"
std::string mib(uint64_t bytes);

}  // namespace brigade::cuda::detail
