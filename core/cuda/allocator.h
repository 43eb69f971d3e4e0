// Memory of CUDA devices: a caching allocator in stream order.
//
// cudaMalloc and cudaFree stop the device, so blocks are kept. A block belongs to the stream that
// was current when it was asked for: given back, it may be handed out again for the same stream at
// once, since work on a stream runs in order. A block that another stream uses as well
// (record_stream) waits until events on those streams have passed. Blocks are cut from segments and
// merge with their neighbours again. Requests are rounded up to 512 bytes; segments are 2 MiB for
// blocks up to 1 MiB, 20 MiB up to 10 MiB, and multiples of 2 MiB above.
//
// What is asked for on a stream that a CUDA graph captures (core/cuda/graph.h) comes from a pool of
// that graph's own, or of several graphs that share it: each replay writes there again, so nobody
// else gets this memory while one of them lives, even when the tensors of the capture are gone. No
// event can be asked about a stream that is being captured: a block that one has used
// (record_stream) is kept until the capture has ended, and then waits as above.
//
// BRIGADE_CUDA_ALLOC=system turns the cache off: every request is a cudaMalloc (for memory
// checkers).
#pragma once

#include <brigade/core/allocator.h>
#include <brigade/core/cuda/stream.h>

#include <string>

namespace brigade::cuda {

// On the current stream of `device`. `bytes` may be 0 (no memory). Throws OutOfMemoryError with a
// breakdown after cached segments were given back and it still did not fit. Safe from any thread; a
// block may be given back by another thread.
Allocation allocate(size_t bytes, int device);

// The memory at `data` (from allocate(), anywhere inside a block) is used on `stream` too: it will
// not be handed out again before what is queued there when it is given back is done. Memory of
// others is left alone.
void record_stream(const void* data, const Stream& stream);

struct DeviceAllocatorStats {
  AllocatorStats blocks;        // system_calls: cudaMalloc; bytes_cached: free in segments that are kept
  uint64_t bytes_reserved = 0;  // all segments
  uint64_t segments = 0;
  uint64_t waiting_blocks = 0;        // given back, but another stream may still use them
  uint64_t retries = 0;               // requests that were served only after the cache was emptied
  uint64_t graph_pools = 0;           // pools of CUDA graphs that hold memory
  uint64_t graph_bytes_reserved = 0;  // their segments; in bytes_reserved as well
};
DeviceAllocatorStats allocator_stats(int device);
void reset_peak_stats(int device);
// In words: in use, cached, reserved, what graphs keep, the device's own figures.
std::string memory_summary(int device);

// Gives segments without a block in use back to the device, except those of graphs.
void empty_cache();

// Memory of graphs that is kept apart: 0 for none. Graphs that are captured into one pool use the
// same memory, so that they may be replayed one after the other only, in the order of their
// captures, and a tensor of one that is to be read after the replay of the next has to be held
// while that one is captured.
using MemPoolId = uint64_t;
MemPoolId new_mem_pool() noexcept;

}  // namespace brigade::cuda
