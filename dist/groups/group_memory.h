// Tensors in memory that a process group gives out, for buckets.
#pragma once

#include <brigade/core/tensor.h>

#include <functional>

namespace brigade::dist {

// `numel` elements in what `allocate(bytes)` gives, 1-d, uninitialised. They know their home: writes to them are noted with
// their lines, and nobody takes them for memory of one gradient alone. Throws ShapeError for a negative number.
Tensor memory_of_group(const void* home, int64_t numel, DType dtype, Device device,
                       const std::function<Allocation(size_t bytes)>& allocate);

class ProcessGroup;
// Room for numbers that are exchanged once, 1-d, uninitialised: memory of the group, which saves copies; on a device the
// allocator's, since there the group's is made by a call that waits, and that no graph can capture.
Tensor room_to_exchange(ProcessGroup& group, int64_t numel, DType dtype, Device device);

}  // namespace brigade::dist
