// A caching allocator for the memory of CUDA devices, in stream order.
//
// cudaMalloc and cudaFree stall the device, so blocks are cached. A block belongs to the stream
// that was current when it was allocated: once freed, it can be reused on the same stream at once,
// since work on a stream runs in order. A block that another stream uses as well (record_stream)
// waits until events on those streams have passed. Blocks are split from segments and merge with
// their neighbors again. Requests are rounded up to 512 bytes; segments are 2 MiB for blocks up to
// 1 MiB, 20 MiB up to 10 MiB, and multiples of 2 MiB above.
//
// Requests on a stream that a CUDA graph captures (core/cuda/graph.h) are served from a pool of
// that graph, or of several graphs that share it: each replay writes there again, so nothing else
// gets this memory while one of the graphs lives, even when the tensors of the capture are gone.
// Events cannot be queried on a stream that is being captured: a block that such a stream has used
// (record_stream) is kept until the capture has ended, and then waits as above.
//
// BRIGADE_CUDA_ALLOC=system turns the cache off: every request is a cudaMalloc (for memory
// checkers).
#pragma once

#include <brigade/core/allocator.h>
#include <brigade/core/cuda/stream.h>

#include <string>

namespace brigade::cuda {

// Allocates on the current stream of `device`. `bytes` may be 0 (no memory). Throws
// OutOfMemoryError with a breakdown if the request still does not fit after cached segments were
// freed. Safe from any thread; another thread may free a block.
Allocation allocate(size_t bytes, int device);

// The memory at `data` (from allocate(), anywhere inside a block) is used on `stream` too: once
// freed, it is not reused before the work that is queued there at that time is done. Ignores memory
// that is not from allocate().
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
// A text with the memory in use, cached, reserved, and kept by graphs, and the device's own figures.
std::string memory_summary(int device);

// Returns segments without a block in use to the device, except those of graphs.
void empty_cache();

// Separate memory for graphs; 0: none. Graphs that are captured into one pool use the same memory,
// so they may only be replayed one after the other, in the order of their captures. A tensor of one
// graph that is read after the replay of the next has to be held while the next graph is captured.
using MemPoolId = uint64_t;
MemPoolId new_mem_pool() noexcept;

// --- Page-locked host memory: only copies from and to such memory run concurrently with the CPU.

// Blocks are cached by size class, since page-locking takes longer than most copies. A block that
// was given back is not reused before the copies recorded for it (record_pinned) are done. Throws
// OutOfMemoryError. Safe from any thread.
Allocation pinned_allocate(size_t bytes);
// Records that work queued on `stream` reads or writes the block at `data` (its start). While a
// CUDA graph captures the stream, the block belongs to the graph's replays: once given back, it is
// not reused before the graph is gone.
void record_pinned(const void* data, const Stream& stream);
AllocatorStats pinned_allocator_stats();
// Returns unused blocks to the system.
void pinned_empty_cache();

}  // namespace brigade::cuda
