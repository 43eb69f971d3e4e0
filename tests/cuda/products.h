// Helpers for tests of matrix products on a device.
#pragma once

#include "on_device.h"

#include <brigade/kernels/cuda/detail/gemm.h>

namespace brigade::test {

// Whether the library is the stand-in, for which it is known which algorithms it lacks.
#if __has_include(<simt/runtime.h>)
constexpr bool kEmulated = true;
#else
constexpr bool kEmulated = false;
#endif

// For sums of k products of numbers around 3, rounded once to the dtype.
inline double bound(DType dtype, int64_t k) {
  const double sum = (dtype == kFloat64 ? 1e-14 : 1e-6) * 10 * std::sqrt(static_cast<double>(k) + 1);
  return sum + (is_half(dtype) ? tolerance(dtype) : 0);
}

inline uint64_t library_calls() {
  const kernels::cuda::PlanStats stats = kernels::cuda::gemm_plan_stats(0);
  return stats.made + stats.found;
}

}  // namespace brigade::test
