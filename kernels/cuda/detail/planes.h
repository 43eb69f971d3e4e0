// Images as planes of height x width, with one thread per element and 32-bit indices.
#pragma once

#include <brigade/kernels/cuda/detail/launch.h>

#include <algorithm>

namespace brigade::kernels::cuda {

inline constexpr int kPlaneThreads = 256;

// The coordinates of element i in planes of `height` x `width`.
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

// Calls run(first, planes) for parts whose element count fits in 32 bits; `largest`: the number of elements of the
// larger of the input and output planes. Throws ShapeError if a single plane does not fit.
template <class Run>
void for_planes(const char* what, int64_t planes, int64_t largest, Run&& run) {
  constexpr int64_t kMost = (int64_t{1} << 31) - 1;
  if (largest > kMost) throw ShapeError("{}: planes of more than 2^31 - 1 elements on a CUDA device", what);
  const int64_t step = kMost / std::max<int64_t>(largest, 1);
  for (int64_t first = 0; first < planes; first += step)
    run(first, std::min(step, planes - first));
}

// Launches kernel(count, arguments...) with one thread for each of `count` elements.
template <class K, class... Arguments>
void launch_planes(const char* what, Device device, int64_t count, K kernel, Arguments... arguments) {
  launch({what, blocks_for(count, kPlaneThreads), kPlaneThreads}, device, kernel, static_cast<uint32_t>(count),
         arguments...);
}

}  // namespace brigade::kernels::cuda
