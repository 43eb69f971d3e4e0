// Helpers for tests of memory and graphs.
#pragma once

#include "on_device.h"

#include <brigade/core/cuda/allocator.h>
#include <brigade/core/cuda/device.h>

namespace brigade::test {

// Starts from a state without used or cached memory.
inline void start_afresh() {
  cuda::synchronize();
  cuda::empty_cache();
  REQUIRE(cuda::allocator_stats(0).blocks.bytes_in_use == 0);
  REQUIRE(cuda::allocator_stats(0).bytes_reserved == 0);
}

inline Tensor filled(int64_t count, double value) {
  Tensor result = empty({count}, {kFloat32, kDevice});
  kernels::fill(result, value);
  return result;
}

inline std::vector<float> values(const Tensor& x) { return on_cpu(x).to_vector<float>(); }

}  // namespace brigade::test
