// Sums of exponentials over rows: reducers for reduce_row, for softmax and logsumexp.
#pragma once

#include <brigade/kernels/cpu/detail/math.h>
#include <brigade/kernels/cpu/detail/reduce_lines.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace brigade::kernels::cpu {

// A NaN is passed over: it shows in the sum.
template <class C>
struct LargestNumber {
  using Value = C;
  Value nothing() const { return -std::numeric_limits<C>::infinity(); }
  Value add(Value best, C x) const { return x > best ? x : best; }
  Value join(Value a, Value b) const { return add(a, b); }
};

// exp of what is not above 0 (a little above, by rounding, does no harm): that of detail/math.h with fewer cases. Below
// -87.7 the result is 0 instead of a subnormal number. Relative error below 4e-7; a NaN stays one.
inline float exp_nonpositive(float x) noexcept {
  constexpr float kToWhole = 12582912.0F + 127.0F;  // as in exp; then the last bits are the exponent of 2^n
  const float clamped = x < -88.0F ? -88.0F : x;
  const float shifted = clamped * 1.44269504088896341F + kToWhole;
  const float n = shifted - kToWhole;
  const float r = (clamped - n * 0.693145751953125F) - n * 1.42860682030941723e-6F;
  float p = 1.3984e-3F;
  p = p * r + 8.3333e-3F;
  p = p * r + 4.1666e-2F;
  p = p * r + 1.66666667e-1F;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  return p * std::bit_cast<float>(std::bit_cast<uint32_t>(shifted) << 23);
}
inline double exp_nonpositive(double x) noexcept { return std::exp(x); }

template <class C>
struct SumOfExp {
  using Value = C;
  C shift;  // the largest element
  Value nothing() const { return 0; }
  Value add(Value sum, C x) const { return sum + exp_nonpositive(x - shift); }
  Value join(Value a, Value b) const { return a + b; }
};

}  // namespace brigade::kernels::cpu
