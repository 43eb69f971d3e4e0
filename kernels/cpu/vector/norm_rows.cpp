// The loops of layer norm and RMS norm over rows that stay in the L1 cache between passes.
#include <brigade/kernels/cpu/vector/targets.h>

#define HWY_TARGET_INCLUDE <brigade/kernels/cpu/vector/norm_rows.cpp>
#include <hwy/foreach_target.h>
// After foreach_target.h:
#include <brigade/kernels/cpu/vector/norm_rows.h>
#include <brigade/kernels/cpu/vector/sums.inl.h>

#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace brigade::kernels::cpu::HWY_NAMESPACE {
namespace {

// Sums the distances from the first element, so that no digits are lost in a row far from zero.
template <class T>
HWY_INLINE float mean_of(const T* x, int64_t n) {
  const auto first = static_cast<float>(x[0]);
  const Vector from = every_lane(first);
  const double distances = sum_of(n, [=](int64_t i, auto load) HWY_ATTR { return load(x + i) - from; });
  return static_cast<float>(static_cast<double>(first) + distances / static_cast<double>(n));
}

// x - center, or x if rows are not centered.
template <bool centered, class V>
HWY_INLINE V distance_from(Vector center, V x) {
  if constexpr (!centered) return x;
  return x - center;
}

template <bool centered, class T>
void normalize_rows_of(const NormRows& rows) {
  const int64_t n = rows.n;
  const float* const gain = rows.gain;
  const float* const shift = rows.shift;
  for (int64_t row = 0; row < rows.rows; ++row) {
    const T* const x = static_cast<const T*>(rows.x) + row * n;
    const float mean = centered ? mean_of(x, n) : 0.0F;
    const Vector center = every_lane(mean);
    const double squares = sum_of(n, [=](int64_t i, auto load) HWY_ATTR {
      const auto distance = distance_from<centered>(center, load(x + i));
      return distance * distance;
    });
    const auto rstd = static_cast<float>(1 / std::sqrt(squares / static_cast<double>(n) + rows.eps));
    if constexpr (centered) rows.means[row] = mean;
    rows.rstds[row] = rstd;
    const Vector scale = every_lane(rstd);
    write_vectors(n, static_cast<T*>(rows.y) + row * n, [=](int64_t i, auto load) HWY_ATTR {
      return hn::MulAdd(distance_from<centered>(center, load(x + i)) * scale, load(gain + i), load(shift + i));
    });
  }
}

struct Slopes {
  double sum = 0;   // sum of s
  double dots = 0;  // sum of s * (x - mean)
};

// The sums over a row; also adds grad * h to `dots` and grad to `slopes`.
template <bool centered, bool adds_dots, bool adds_slopes, class T>
HWY_INLINE Slopes slopes_of(const T* grad, const T* x, const float* gain, Vector center, Vector scale, float* dots,
                            float* slopes, int64_t n) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  Slopes total;
  // Sums of blocks, as in sum_of.
  const int64_t block = 64 * 2 * lanes;
  for (int64_t first = 0; first < n; first += block) {
    const int64_t end = std::min(n, first + block);
    Vector sums[2] = {hn::Zero(d), hn::Zero(d)};
    Vector products[2] = {hn::Zero(d), hn::Zero(d)};
    // Elements beyond the end load as zeros and add nothing to both sums.
    const auto take = [&](int which, int64_t i, auto load, auto store) HWY_ATTR {
      const Vector g = load(grad + i);
      const Vector s = g * load(gain + i);
      const Vector distance = distance_from<centered>(center, load(x + i));
      if constexpr (centered) sums[which] = sums[which] + s;
      products[which] = hn::MulAdd(s, distance, products[which]);
      if constexpr (adds_dots) store(hn::MulAdd(g, distance * scale, load(dots + i)), dots + i);
      if constexpr (adds_slopes) store(load(slopes + i) + g, slopes + i);
    };
    int64_t i = first;
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      take(0, i, whole_loads(), whole_stores());
      take(1, i + lanes, whole_loads(), whole_stores());
    }
    for (; i < end; i += lanes)
      take(0, i, part_loads(std::min(lanes, end - i)), part_stores(std::min(lanes, end - i)));
    total.sum += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sums[0] + sums[1])));
    total.dots += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, products[0] + products[1])));
  }
  return total;
}

template <bool centered, bool adds_dots, bool adds_slopes, class T>
void gradients_of(const NormRowGradients& rows) {
  const int64_t n = rows.n;
  const float* const gain = rows.gain;
  for (int64_t row = 0; row < rows.rows; ++row) {
    const T* const grad = static_cast<const T*>(rows.grad) + row * n;
    const T* const x = static_cast<const T*>(rows.x) + row * n;
    const Vector center = every_lane(centered ? rows.means[row] : 0.0F);
    const float rstd = rows.rstds[row];
    const Vector scale = every_lane(rstd);
    const Slopes slopes =
        slopes_of<centered, adds_dots, adds_slopes>(grad, x, gain, center, scale, rows.dots, rows.slopes, n);
    if (!rows.out) continue;
    const auto count = static_cast<double>(n);
    const Vector mean_slope = every_lane(static_cast<float>(slopes.sum / count));
    const Vector pull = every_lane(static_cast<float>(slopes.dots / count) * rstd * rstd);
    write_vectors(n, static_cast<T*>(rows.out) + row * n, [=](int64_t i, auto load) HWY_ATTR {
      const Vector s = load(grad + i) * load(gain + i);
      const Vector part = centered ? s - mean_slope : s;
      return scale * hn::NegMulAdd(distance_from<centered>(center, load(x + i)), pull, part);
    });
  }
}

template <class T>
void gradients_of(const NormRowGradients& rows) {
  // RMS norm has no shift.
  if (!rows.means)
    return rows.dots ? gradients_of<false, true, false, T>(rows) : gradients_of<false, false, false, T>(rows);
  if (rows.dots && rows.slopes) return gradients_of<true, true, true, T>(rows);
  if (rows.dots) return gradients_of<true, true, false, T>(rows);
  if (rows.slopes) return gradients_of<true, false, true, T>(rows);
  gradients_of<true, false, false, T>(rows);
}

}  // namespace

void normalize_rows_loop(const NormRows& rows) {
  visit_floats(rows.dtype, [&]<class T>(T) HWY_ATTR {
    if (rows.means) return normalize_rows_of<true, T>(rows);
    normalize_rows_of<false, T>(rows);
  });
}
void norm_row_gradients_loop(const NormRowGradients& rows) {
  visit_floats(rows.dtype, [&]<class T>(T) HWY_ATTR { gradients_of<T>(rows); });
}

}  // namespace brigade::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brigade::kernels::cpu {

HWY_EXPORT(normalize_rows_loop);
HWY_EXPORT(norm_row_gradients_loop);

void normalize_rows(const NormRows& rows) { HWY_DYNAMIC_DISPATCH(normalize_rows_loop)(rows); }
void norm_row_gradients(const NormRowGradients& rows) { HWY_DYNAMIC_DISPATCH(norm_row_gradients_loop)(rows); }

}  // namespace brigade::kernels::cpu
#endif
