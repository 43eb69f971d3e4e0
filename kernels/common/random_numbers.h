// Converts words of the random stream to numbers, identically on every device.
//
// An element takes one word of the stream (float64: two), so that `per_block` elements share a block of four words.
#pragma once

#include <brigade/core/compiler.h>
#include <brigade/core/dtype.h>
#include <brigade/core/random.h>

#include <array>
#include <cmath>
#include <numbers>

namespace brigade::kernels {

using RandomWords = std::array<uint32_t, 4>;

template <class T>
inline constexpr int per_block = sizeof(T) == 8 ? 2 : 4;

// The number of bits that a T in [0, 1) holds exactly; with more bits it could be rounded, even to 1.
template <class T>
inline constexpr int uniform_bits = 24;
template <>
inline constexpr int uniform_bits<double> = 53;
template <>
inline constexpr int uniform_bits<float16> = 11;
template <>
inline constexpr int uniform_bits<bfloat16> = 8;

// The 53 leading bits of two words as a number in [0, 1).
BRIGADE_HOST_DEVICE inline double uniform_from_words(uint32_t high, uint32_t low) {
  return static_cast<double>(((static_cast<uint64_t>(high) << 32) | low) >> 11) * 0x1p-53;
}

// `words`: a block of the stream; k: the index of the element in the block.
struct Uniform {
  double low, high;
  template <class T>
  BRIGADE_HOST_DEVICE T make(const RandomWords& words, int k) const {
    double share = 0;
    if constexpr (per_block<T> == 2) {
      share = uniform_from_words(words[static_cast<size_t>(2 * k)], words[static_cast<size_t>(2 * k + 1)]);
    } else {
      constexpr int kBits = uniform_bits<T>;
      share = static_cast<double>(words[static_cast<size_t>(k)] >> (32 - kBits)) / static_cast<double>(1 << kBits);
    }
    using C = compute_type<T>;
    const T value = static_cast<T>(static_cast<C>(low + (high - low) * share));
    // With bounds other than 0 and 1 the sum may still be rounded to the upper bound, which is excluded.
    return static_cast<double>(static_cast<C>(value)) < high ? value : static_cast<T>(static_cast<C>(low));
  }
};

// Two consecutive elements share a radius and an angle; the even one is the cosine, the odd one the sine (Box and
// Muller). The radius comes from word k, the angle from word k + 1, with k even; for float64 from two words each.
// Computed in double and rounded once.
struct Normal {
  double mean, stddev;
  template <class T>
  BRIGADE_HOST_DEVICE T make(const RandomWords& words, int k) const {
    double u1 = 0, turn = 0;  // u1 in (0, 1]
    if constexpr (per_block<T> == 2) {
      u1 = uniform_from_words(words[0], words[1]) + 0x1p-53;
      turn = uniform_from_words(words[2], words[3]);
    } else {
      const size_t even = static_cast<size_t>(k) & ~size_t{1};
      u1 = (static_cast<double>(words[even]) + 1.0) * 0x1p-32;
      turn = static_cast<double>(words[even + 1]) * 0x1p-32;
    }
    const double angle = 2 * std::numbers::pi * turn;
    const double radius = std::sqrt(-2 * std::log(u1));
    const double z = radius * (k % 2 == 0 ? std::cos(angle) : std::sin(angle));
    return static_cast<T>(static_cast<compute_type<T>>(mean + stddev * z));
  }
};

}  // namespace brigade::kernels
