#include <brigade/kernels/cpu/detail/gelu.h>

#ifdef __AVX512F__

#include <immintrin.h>

#include <cmath>
#include <numbers>

namespace brigade::kernels::cpu {

namespace {

constexpr int kDegree = 4;
constexpr int kPieces = 32;  // the last one is zero: what lies beyond
constexpr double kWidth = 0.2;

struct alignas(64) Table {
  float coefficients[kDegree + 1][kPieces] = {};

  // Newton's divided differences in the Chebyshev points of each piece, then as powers of (z / kWidth - piece).
  template <class F>
  explicit Table(F f) {
    constexpr int n = kDegree + 1;
    for (int piece = 0; piece < kPieces - 1; ++piece) {
      double at[n], difference[n];
      for (int i = 0; i < n; ++i) {
        at[i] = 0.5 * std::cos(std::numbers::pi * (2 * i + 1) / (2 * n));
        difference[i] = f((piece + at[i]) * kWidth);
      }
      for (int j = 1; j < n; ++j) {
        for (int i = kDegree; i >= j; --i)
          difference[i] = (difference[i] - difference[i - 1]) / (at[i] - at[i - j]);
      }
      double powers[n] = {difference[kDegree]};
      for (int j = kDegree - 1; j >= 0; --j) {
        for (int i = kDegree; i > 0; --i)
          powers[i] = powers[i - 1] - at[j] * powers[i];
        powers[0] = difference[j] - at[j] * powers[0];
      }
      for (int i = 0; i < n; ++i)
        coefficients[i][piece] = static_cast<float>(powers[i]);
    }
  }
};

double tail(double z) { return 0.5 * std::erfc(z / std::numbers::sqrt2); }
double slope(double z) {
  return tail(z) - z * std::exp(-0.5 * z * z) * (std::numbers::inv_sqrtpi / std::numbers::sqrt2);
}

// The table in ten registers.
class Pieces {
 public:
  explicit Pieces(const Table& table) {
    for (int i = 0; i <= kDegree; ++i) {
      low_[i] = _mm512_load_ps(table.coefficients[i]);
      high_[i] = _mm512_load_ps(table.coefficients[i] + 16);
    }
  }
  // For z = 0 .. kEnd.
  __m512 operator()(__m512 z) const {
    const __m512 scale = _mm512_set1_ps(static_cast<float>(1 / kWidth));
    const __m512 rounder = _mm512_set1_ps(12582912.0F);  // adding 1.5 * 2^23 rounds to a whole number, in the low bits
    const __m512 shifted = _mm512_fmadd_ps(z, scale, rounder);
    const __m512 from_middle = _mm512_fmsub_ps(z, scale, _mm512_sub_ps(shifted, rounder));
    const __m512i piece = _mm512_castps_si512(shifted);
    __m512 y = _mm512_permutex2var_ps(low_[kDegree], piece, high_[kDegree]);
    for (int i = kDegree - 1; i >= 0; --i)
      y = _mm512_fmadd_ps(y, from_middle, _mm512_permutex2var_ps(low_[i], piece, high_[i]));
    return y;
  }

 private:
  __m512 low_[kDegree + 1], high_[kDegree + 1];
};

constexpr float kEnd = static_cast<float>((kPieces - 1) * kWidth);

__m512 distance(__m512 x) { return _mm512_min_ps(_mm512_set1_ps(kEnd), _mm512_abs_ps(x)); }

// What the formulas make of infinities, in the table of vfixupimmps: the product of one with a vanished tail is NaN.
constexpr int kNaNOfMinusInfinity = 0x30000;
constexpr int kNaNOfInfinities = 0x330000;

// Calls body(first, mask) for stretches of 16; the last one may be shorter.
template <class Body>
void for_vectors(int64_t count, Body&& body) {
  int64_t i = 0;
  for (; i + 16 <= count; i += 16)
    body(i, static_cast<__mmask16>(0xFFFF));
  if (i < count) body(i, static_cast<__mmask16>((1U << (count - i)) - 1));
}

}  // namespace

void gelu_by_table(const float* x, float* y, int64_t count) {
  static const Table table(&tail);
  const Pieces pieces(table);
  for_vectors(count, [&](int64_t i, __mmask16 mask) {
    const __m512 v = _mm512_maskz_loadu_ps(mask, x + i);
    const __m512 z = distance(v);
    const __m512 positive = _mm512_max_ps(_mm512_setzero_ps(), v);  // of NaN: NaN
    const __m512 result = _mm512_fnmadd_ps(z, pieces(z), positive);
    _mm512_mask_storeu_ps(y + i, mask, _mm512_fixupimm_ps(result, v, _mm512_set1_epi32(kNaNOfMinusInfinity), 0));
  });
}

void gelu_backward_by_table(const float* grad, const float* x, float* out, int64_t count) {
  static const Table table(&slope);
  const Pieces pieces(table);
  for_vectors(count, [&](int64_t i, __mmask16 mask) {
    const __m512 v = _mm512_maskz_loadu_ps(mask, x + i);
    const __m512 u = pieces(distance(v));
    const __mmask16 is_positive = _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_GT_OQ);
    const __m512 derivative = _mm512_mask_sub_ps(u, is_positive, _mm512_set1_ps(1.0F), u);
    const __m512 result = _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, grad + i), derivative);
    _mm512_mask_storeu_ps(out + i, mask, _mm512_fixupimm_ps(result, v, _mm512_set1_epi32(kNaNOfInfinities), 0));
  });
}

}  // namespace brigade::kernels::cpu

#endif
