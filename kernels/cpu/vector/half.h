// Conversions between the 16-bit floating types and float32 over dense arrays, compiled for each instruction set; to
// nearest, ties to even, NaN to NaN (core/half.h, bit for bit). The arrays do not overlap.
#pragma once

#include <brigade/core/dtype.h>
#include <brigade/core/half.h>

#include <cstdint>
#include <type_traits>

namespace brigade::kernels::cpu {

void widen(const float16* from, float* to, int64_t n);
void widen(const bfloat16* from, float* to, int64_t n);
void narrow(const float* from, float16* to, int64_t n);
void narrow(const float* from, bfloat16* to, int64_t n);

// n elements in their compute type: x itself, or for a half type `room`, filled with the converted elements.
template <class T>
const compute_type<T>* in_compute_type(const T* x, compute_type<T>* room, int64_t n) {
  if constexpr (std::is_same_v<T, compute_type<T>>) {
    return x;
  } else {
    widen(x, room, n);
    return room;
  }
}

}  // namespace brigade::kernels::cpu
