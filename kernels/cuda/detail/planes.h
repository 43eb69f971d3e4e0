// Images as planes of height x width, one thread per element, counted in 32 bits.
#pragma once

#include <brigade/kernels/cuda/detail/launch.h>

#include <algorithm>
#include <string>

namespace brigade::kernels::cuda {

inline constexpr int kPlaneThreads = 256;

// Where element i of planes of `height` x `width` stands.
struct PlanePlace {
  uint32_t plane;
  int32_t h, w;
  __device__ PlanePlace(uint32_t i, int32_t height, int32_t width) {
    const uint32_t row = i / static_cast<uint32_t>(width);
    plane = row / static_cast<uint32_t>(height);
    h = static_cast<int32_t>(row - plane * static_cast<uint32_t>(height));
    w = static_cast<int32_t>(i - row * static_cast<uint32_t>(width));
  }
};

// Calls run(first, planes) for parts whose elements 32 bits can count; `largest`: elements of the
// larger of the planes that are read and written. Throws ShapeError for planes that 32 bits do not
// count.
template <class Run>
void for_planes(const char* what, int64_t planes, int64_t largest, Run&& run) {
  constexpr int64_t kMost = (int64_t{1} << 31) - 1;
  if (largest > kMost) throw ShapeError("{}: planes of more than 2^31 - 1 elements on a CUDA device", what);
  const int64_t step = kMost / std::max<int64_t>(largest, 1);
  for (int64_t first = 0; first < planes; first += step)
    run(first, std::min(step, planes - first));
}

// kernel(count, the arguments) with a thread for each of `count` elements.
template <class K, class... Arguments>
void launch_planes(const char* what, Device device, int64_t count, K kernel, Arguments... arguments) {
  launch({what, blocks_for(count, kPlaneThreads), kPlaneThreads}, device, kernel, static_cast<uint32_t>(count),
         arguments...);
}

}  // namespace brigade::kernels::cuda
