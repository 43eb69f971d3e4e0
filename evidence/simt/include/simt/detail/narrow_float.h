// 16-bit floating-point numbers for cuda_fp16.h and cuda_bf16.h: correctly rounded conversions from double (to nearest,
// ties to even, with subnormals) and arithmetic that rounds once.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace simt::detail {

// A 16-bit IEEE 754 format: one sign bit, 15 - kFraction exponent bits, kFraction fraction bits.
template <int kFraction>
struct NarrowFormat {
  static constexpr int kBias = (1 << (14 - kFraction)) - 1;
  static constexpr uint16_t kInfinity = static_cast<uint16_t>(0x7fff >> kFraction << kFraction);
  static constexpr uint16_t kNan = 0x7fff;  // the only NaN that the device's conversions produce

  static constexpr uint16_t from_double(double value) {
    const auto bits = std::bit_cast<uint64_t>(value);
    const auto sign = static_cast<uint16_t>(bits >> 48 & 0x8000);
    const uint64_t magnitude = bits & ~(uint64_t{1} << 63);
    if (value != value) return kNan;
    const int exponent = static_cast<int>(magnitude >> 52) - 1023;
    if (exponent > kBias) return sign | kInfinity;
    // The number of dropped bits: those beyond the fraction, plus one for each power of two below the smallest normal
    // number.
    const bool subnormal = exponent < 1 - kBias;
    const int dropped = 52 - kFraction + (subnormal ? 1 - kBias - exponent : 0);
    if (dropped > 53) return sign;  // below half of the smallest subnormal
    const uint64_t significand = (magnitude & ((uint64_t{1} << 52) - 1)) | uint64_t{1} << 52;
    const uint64_t kept = significand >> dropped;
    const uint64_t rest = significand & ((uint64_t{1} << dropped) - 1);
    const uint64_t half = uint64_t{1} << (dropped - 1);
    const bool up = rest > half || (rest == half && (kept & 1) != 0);
    // `kept` includes the bit above the fraction, which adds 1 to the exponent; a rounding carry goes there as well, up
    // to infinity.
    const int exponent_field = subnormal ? 0 : exponent + kBias - 1;
    return sign | static_cast<uint16_t>((static_cast<uint64_t>(exponent_field) << kFraction) + kept + (up ? 1 : 0));
  }

  static float to_float(uint16_t bits) {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
    const int magnitude = bits & 0x7fff;
    if (magnitude >= kInfinity)
      return std::bit_cast<float>(sign | 0x7f800000u |
                                  static_cast<uint32_t>(magnitude - kInfinity) << (23 - kFraction));
    const int field = magnitude >> kFraction;
    const int fraction = magnitude & ((1 << kFraction) - 1);
    const int significand = field == 0 ? fraction : fraction | 1 << kFraction;
    const double value = std::ldexp(significand, (field == 0 ? 1 : field) - kBias - kFraction);
    return static_cast<float>(sign != 0 ? -value : value);
  }
};

template <int kFraction>
class NarrowFloat {
  using Format = NarrowFormat<kFraction>;

 public:
  NarrowFloat() = default;  // like a built-in number: uninitialized
  template <class T>
  requires(std::is_floating_point_v<T> || (std::is_integral_v<T> && sizeof(T) <= 4)) NarrowFloat(T value)
      : bits_(Format::from_double(static_cast<double>(value))) {}
  operator float() const { return Format::to_float(bits_); }

  static NarrowFloat from_bits(uint16_t bits) {
    NarrowFloat result;
    result.bits_ = bits;
    return result;
  }
  uint16_t bits() const { return bits_; }

  friend NarrowFloat operator-(NarrowFloat x) { return from_bits(x.bits_ ^ 0x8000); }
  // double has more than twice the precision, so rounding to it first never changes a sum, product, or quotient.
  friend NarrowFloat operator+(NarrowFloat x, NarrowFloat y) { return wide(x) + wide(y); }
  friend NarrowFloat operator-(NarrowFloat x, NarrowFloat y) { return wide(x) - wide(y); }
  friend NarrowFloat operator*(NarrowFloat x, NarrowFloat y) { return wide(x) * wide(y); }
  friend NarrowFloat operator/(NarrowFloat x, NarrowFloat y) { return wide(x) / wide(y); }
  NarrowFloat& operator+=(NarrowFloat other) { return *this = *this + other; }
  NarrowFloat& operator-=(NarrowFloat other) { return *this = *this - other; }
  NarrowFloat& operator*=(NarrowFloat other) { return *this = *this * other; }
  NarrowFloat& operator/=(NarrowFloat other) { return *this = *this / other; }
  friend bool operator==(NarrowFloat x, NarrowFloat y) { return wide(x) == wide(y); }
  friend bool operator!=(NarrowFloat x, NarrowFloat y) { return wide(x) != wide(y); }
  friend bool operator<(NarrowFloat x, NarrowFloat y) { return wide(x) < wide(y); }
  friend bool operator<=(NarrowFloat x, NarrowFloat y) { return wide(x) <= wide(y); }
  friend bool operator>(NarrowFloat x, NarrowFloat y) { return wide(x) > wide(y); }
  friend bool operator>=(NarrowFloat x, NarrowFloat y) { return wide(x) >= wide(y); }

 private:
  static double wide(NarrowFloat x) { return static_cast<float>(x); }

  uint16_t bits_;
};

template <class T>
struct alignas(4) NarrowPair {
  T x, y;
};

}  // namespace simt::detail
