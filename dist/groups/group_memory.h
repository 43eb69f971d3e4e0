// Tensors in memory that a process group gives out, for buckets.
#pragma once

#include <brigade/core/tensor.h>

#include <functional>

namespace brigade::dist {

// `numel` elements in what `allocate(bytes)` gives, 1-d, uninitialised. They know their home: writes to them are noted with
// their lines, and nobody takes them for memory of one gradient alone. Throws ShapeError for a negative number.
Tensor memory_of_group(const void* home, int64_t numel, DType dtype, Device device,
                       const std::function<Allocation(size_t bytes)>& allocate);

}  // namespace brigade::dist
