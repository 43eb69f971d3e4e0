// Orthonormal columns, for PowerSGD.
#pragma once

#include <brigade/core/tensor.h>

#include <cstdint>
#include <vector>

namespace brigade::dist {

// Makes the columns of a contiguous floating n x r matrix orthonormal, in place, on any device.
// Columns that vanish, as those that depend on others do, become zero; their numbers are returned.
std::vector<int64_t> orthogonalize(const Tensor& matrix);

}  // namespace brigade::dist
