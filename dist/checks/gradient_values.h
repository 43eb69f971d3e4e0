// A two-number summary of a gradient's values that the ranks compare; equal values give equal summaries up to
// rounding.
#pragma once

#include <brigade/core/tensor.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace brigade::dist {

struct GradientValues {
  // Scalar product with a fixed sequence of weights, divided by the norm; 0 for zeros.
  double direction = 0;
  // log2 of the norm; for zeros and for infinity or NaN, values that no norm has.
  double size = kSizeOfZeros;

  static constexpr double kSizeOfZeros = -2000;

  // Compares with a tolerance, since hosts with different processors sum in different orders.
  static constexpr double kTolerance = 1e-3;
  bool is_like(const GradientValues& other, double tolerance = kTolerance) const noexcept;
};

// Summary of a floating-point tensor on any device. An undefined tensor, or one on a device that is capturing a
// graph, counts as zeros.
GradientValues values_of(const Tensor& gradient);
// Summary of the first elements only: enough where an operation changes all elements alike.
GradientValues values_of_some(const Tensor& gradient);

// Ranks whose values differ from those shared by more than half of the ranks; empty if there is no such majority.
std::vector<int> odd_among(std::span<const GradientValues> by_rank);

// Summarizes any number of gradients in four words; the maxima of the words over the ranks show whether the gradients
// are alike.
class ValuesDigest {
 public:
  static constexpr size_t kWords = 4;

  // `position`: identifies the gradient.
  void add(size_t position, const GradientValues& values) noexcept;
  std::array<int64_t, kWords> words() const noexcept;
  // `maxima`: of words() over the ranks.
  static bool differ(const int64_t* maxima) noexcept;

 private:
  double directions_ = 0;
  double sizes_ = 0;
};

}  // namespace brigade::dist
