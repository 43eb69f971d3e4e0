// Page-locked host memory: only copies from and to such memory run concurrently with the CPU.
#pragma once

#include <brigade/core/allocator.h>
#include <brigade/core/cuda/stream.h>

namespace brigade::cuda {

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
