// Tensors in memory that a process group allocates, for buckets.
#pragma once

#include <brigade/core/tensor.h>

#include <functional>

namespace brigade::dist {

// A 1-d uninitialized tensor of `numel` elements in the memory that `allocate(bytes)` returns. Its storage carries
// `home`: writes to it are recorded with their source lines, and it is never mistaken for the memory of a single
// gradient. Throws ShapeError when `numel` is negative.
Tensor memory_of_group(const void* home, int64_t numel, DType dtype, Device device,
                       const std::function<Allocation(size_t bytes)>& allocate);

class ProcessGroup;
// A 1-d uninitialized tensor for values that are exchanged once. On the CPU it is memory of the group, which saves
// copies; on a device it comes from the allocator, since there the group allocates with a call that blocks and cannot
// be captured into a graph.
Tensor room_to_exchange(ProcessGroup& group, int64_t numel, DType dtype, Device device);

}  // namespace brigade::dist
