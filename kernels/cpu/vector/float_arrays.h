// What loops run over that compute in float32.
#pragma once

#include <brigade/core/dtype.h>

#include <cstdint>

namespace brigade::kernels::cpu {

// Dense arrays of `n` elements of float32, or all of float16, or all of bfloat16: as many inputs as
// the loop has, and the output, which may be one of them.
struct FloatArrays {
  DType dtype;
  const void* const* in;
  void* out;
  int64_t n;
};

}  // namespace brigade::kernels::cpu
