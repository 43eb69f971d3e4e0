// The arrays of loops that compute in float32.
#pragma once

#include <brigade/core/dtype.h>

#include <cstdint>

namespace brigade::kernels::cpu {

// Dense arrays of `n` elements, all of float32, float16 or bfloat16: the inputs of the loop, and the output, which may
// be one of them.
struct FloatArrays {
  DType dtype;
  const void* const* in;
  void* out;
  int64_t n;
};

}  // namespace brigade::kernels::cpu
