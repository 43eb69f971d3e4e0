// Device-independent parts of the bucket kernels: argument checks, and the arithmetic that the CPU and CUDA share.
#pragma once

#include <brigade/core/compiler.h>
#include <brigade/core/dtype.h>
#include <brigade/kernels/bucket.h>

#include <cmath>
#include <cstdint>

namespace brigade::kernels {

// Returns the common dtype of the tensors, or flat's if none is defined. `flags` may be undefined.
DType check_bucket(const char* what, const Tensor& flat, const Tensor& flags, std::span<const Tensor> tensors,
                   std::span<const int64_t> offsets);
void check_bucket_sums(const Tensor& flat, std::span<const int64_t> offsets, std::span<const int64_t> numels,
                       const Tensor& sums);
void check_bucket_words(const Tensor& words, const Tensor& sums);
void check_bucket_probe(const Tensor& x, const Tensor& out);

// A weight of magnitude 0.5 to 1.5 and either sign. With signs alone, equal elements would cancel out. The hash is
// SplitMix64 (Steele, Lea and Flood 2014, "Fast Splittable Pseudorandom Number Generators").
BRIGADE_HOST_DEVICE constexpr double hashed_weight(uint64_t i) noexcept {
  uint64_t bits = (i + 1) * 0x9E3779B97F4A7C15U;
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9U;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBU;
  bits ^= bits >> 31;
  const double size = 0.5 + static_cast<double>(bits >> 11) * 0x1p-53;
  return bits & 1 ? size : -size;
}
// The weight of element i of a probe. All blocks of kProbeWeights elements share the inner weights, and each block has
// a weight of its own.
inline constexpr uint64_t kProbeWeights = 512;
BRIGADE_HOST_DEVICE constexpr double probe_weight(uint64_t i) noexcept {
  return hashed_weight(i % kProbeWeights) * hashed_weight(i / kProbeWeights);
}

// See bucket_words.
template <class T>
BRIGADE_HOST_DEVICE void write_bucket_words(double total, bool non_finite, T* words) {
  using C = compute_type<T>;
  const double size = total > 0 && std::isfinite(total) ? std::log2(total) : 0;
  words[0] = static_cast<T>(static_cast<C>(size));
  // The square of the value as sent: half types round it.
  const double sent = static_cast<double>(static_cast<C>(words[0]));
  words[1] = static_cast<T>(static_cast<C>(sent * sent));
  words[2] = static_cast<T>(static_cast<C>(total == 0 ? 1 : 0));
  words[3] = static_cast<T>(static_cast<C>(non_finite ? 1 : 0));
}

}  // namespace brigade::kernels
