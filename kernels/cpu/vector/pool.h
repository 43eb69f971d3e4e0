// Max pooling of a plane with 2 x 2 windows, the common case, compiled for each instruction set.
#pragma once

#include <cstdint>

namespace brigade::kernels::cpu {

inline constexpr int64_t kPoolLanes = 8;

// Non-overlapping windows over an image [2 * rows or more, width], `out` >= kPoolLanes windows per row, 2 * out <=
// width. values and places: [rows, out]; places are positions in the image. NaNs win, and the first among equals. The
// image has fewer than 2^31 elements.
void max_pool_two_by_two(const float* image, int64_t width, int64_t rows, int64_t out, float* values, int64_t* places);

}  // namespace brigade::kernels::cpu
