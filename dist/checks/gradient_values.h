// The values of a gradient in two numbers, which the ranks compare: alike, but for rounding, where
// the values are.
#pragma once

#include <brigade/core/tensor.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace brigade::dist {

struct GradientValues {
  // The scalar product with a fixed sequence of weights, by the norm; 0 for zeros.
  double direction = 0;
  // log2 of the norm; numbers that no norm has for zeros, and where there is an infinity or NaN.
  double size = kSizeOfZeros;

  static constexpr double kSizeOfZeros = -2000;

  // Hosts with other processors add in another order.
  bool is_like(const GradientValues& other) const noexcept;
};

// Of a floating tensor on any device; an undefined one is like zeros, and so is one that a graph captures.
GradientValues values_of(const Tensor& gradient);
// Of its first elements: enough where an operation changes all elements alike.
GradientValues values_of_some(const Tensor& gradient);

// The ranks whose values are unlike those that more than half of the ranks have in common; none where there is no such
// half.
std::vector<int> odd_among(std::span<const GradientValues> by_rank);

// The values of any number of gradients in four words, whose maxima over the ranks say whether they
// are alike.
class ValuesDigest {
 public:
  static constexpr size_t kWords = 4;

  // `position`: tells one gradient from another.
  void add(size_t position, const GradientValues& values) noexcept;
  std::array<int64_t, kWords> words() const noexcept;
  // From the maxima.
  static bool differ(const int64_t* maxima) noexcept;

 private:
  double directions_ = 0;
  double sizes_ = 0;
};

}  // namespace brigade::dist
