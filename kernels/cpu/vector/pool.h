// The largest of each window of two by two of a plane, the usual pooling, compiled for each
// instruction set.
#pragma once

#include <cstdint>

namespace brigade::kernels::cpu {

inline constexpr int64_t kPoolLanes = 8;

// Windows side by side over an image [2 * rows or more, width], of `out` >= kPoolLanes columns each,
// 2 * out <= width. values and places: [rows, out]; places count from the image's start, where a NaN
// wins and of equal elements the first. The image has fewer than 2^31 elements.
void max_pool_two_by_two(const float* image, int64_t width, int64_t rows, int64_t out, float* values, int64_t* places);

}  // namespace brigade::kernels::cpu
