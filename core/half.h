// The two 16-bit floating types: float16 (IEEE binary16) and bfloat16 (the upper half of a
// float32).
//
// Both are storage types: arithmetic converts to float and rounds back to nearest, ties to even.
#pragma once

#include <brigade/core/compiler.h>

#include <bit>
#include <cstdint>
#include <type_traits>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#elif defined(__F16C__)
#include <immintrin.h>
#endif

namespace brigade {

namespace detail {

// Source of the bit manipulation: the IEEE 754 layouts; subnormals are scaled through a float
// subtraction.
BRIGADE_HOST_DEVICE inline float float_from_half_bits(uint16_t bits) noexcept {
#ifdef __CUDACC__
  return __half2float(__ushort_as_half(bits));
#elif defined(__F16C__)
  return _cvtsh_ss(bits);
#else
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  uint32_t magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
  if (magnitude >= 0x0400u) return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
  const float value = static_cast<float>(magnitude) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
#endif
}

BRIGADE_HOST_DEVICE inline uint16_t half_bits_from_float(float value) noexcept {
#ifdef __CUDACC__
  return __half_as_ushort(__float2half_rn(value));
#elif defined(__F16C__)
  return _cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT);
#else
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u | static_cast<uint16_t>((magnitude >> 13) & 0x3ffu);
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;  // rounds to infinity
  if (magnitude < 0x38800000u) {                        // subnormal half: let the float adder round
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return sign | static_cast<uint16_t>(std::bit_cast<uint32_t>(shifted) - 0x3f000000u);
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return sign | static_cast<uint16_t>((rounded - 0x38000000u) >> 13);
#endif
}

}  // namespace detail

struct float16 {
  uint16_t bits = 0;

  float16() = default;
  template <class T>
  requires std::is_arithmetic_v<T> BRIGADE_HOST_DEVICE float16(T value)
  noexcept : bits(detail::half_bits_from_float(static_cast<float>(value))) {}
  BRIGADE_HOST_DEVICE operator float() const noexcept { return detail::float_from_half_bits(bits); }
};

struct bfloat16 {
  uint16_t bits = 0;

  bfloat16() = default;
  template <class T>
  requires std::is_arithmetic_v<T> BRIGADE_HOST_DEVICE bfloat16(T value)
  noexcept {
#ifdef __CUDA_ARCH__
    bits = __bfloat16_as_ushort(__float2bfloat16_rn(static_cast<float>(value)));
#else
    const uint32_t word = std::bit_cast<uint32_t>(static_cast<float>(value));
    const bool nan = (word & 0x7fffffffu) > 0x7f800000u;
    bits = nan ? static_cast<uint16_t>((word >> 16) | 0x40u)
               : static_cast<uint16_t>((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
#endif
  }
  BRIGADE_HOST_DEVICE operator float() const noexcept {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
};

}  // namespace brigade
