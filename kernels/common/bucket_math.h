// The arithmetic of bucket.h that the CPU and CUDA share.
#pragma once

#include <brigade/core/dtype.h>
#include <brigade/core/host_device.h>

#include <cmath>
#include <cstdint>

namespace brigade::kernels {

// Fibonacci hashing: the top bit of (i + 1) times 2^64 / golden ratio.
BRIGADE_HOST_DEVICE constexpr double hashed_sign(uint64_t i) noexcept {
  return ((i + 1) * 0x9E3779B97F4A7C15U) >> 63 ? 1.0 : -1.0;
}
// The sign of element i of a probe. Each block of kProbeSigns has the same signs inside and one of
// its own.
inline constexpr uint64_t kProbeSigns = 512;
BRIGADE_HOST_DEVICE constexpr double probe_sign(uint64_t i) noexcept {
  return hashed_sign(i % kProbeSigns) * hashed_sign(i / kProbeSigns);
}

// See bucket_words.
template <class T>
BRIGADE_HOST_DEVICE void write_bucket_words(double total, bool non_finite, T* words) {
  using C = compute_type<T>;
  const double size = total > 0 && std::isfinite(total) ? std::log2(total) : 0;
  words[0] = static_cast<T>(static_cast<C>(size));
  // The square of what is sent, not of what was meant: halves round.
  const double sent = static_cast<double>(static_cast<C>(words[0]));
  words[1] = static_cast<T>(static_cast<C>(sent * sent));
  words[2] = static_cast<T>(static_cast<C>(total == 0 ? 1 : 0));
  words[3] = static_cast<T>(static_cast<C>(non_finite ? 1 : 0));
}

}  // namespace brigade::kernels
