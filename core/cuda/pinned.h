// Page-locked host memory: copies to and from a device run beside the CPU only from there.
#pragma once

#include <brigade/core/allocator.h>
#include <brigade/core/cuda/stream.h>

namespace brigade::cuda {

// Kept for reuse by size classes, since page-locking takes longer than most copies. A block given
// back is not handed out again before the copies that were noted for it (record_pinned) are done.
// Throws OutOfMemoryError. Safe from any thread.
Allocation pinned_allocate(size_t bytes);
// The block at `data` (its start) is read or written by what is queued on `stream`. While a CUDA
// graph captures the stream, the block belongs to the graph's replays: given back, it is not handed
// out again before the graph is gone.
void record_pinned(const void* data, const Stream& stream);
AllocatorStats pinned_allocator_stats();
// Gives blocks that nobody uses back to the system.
void pinned_empty_cache();

}  // namespace brigade::cuda
