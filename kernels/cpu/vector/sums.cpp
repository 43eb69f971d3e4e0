// The loops of sums and normalization, with scalar loops for float64.
#include <brigade/kernels/cpu/vector/targets.h>

#define HWY_TARGET_INCLUDE <brigade/kernels/cpu/vector/sums.cpp>
#include <hwy/foreach_target.h>
// After foreach_target.h:
#include <brigade/kernels/cpu/detail/lane_sum.h>
#include <brigade/kernels/cpu/vector/sums.h>
#include <brigade/kernels/cpu/vector/sums.inl.h>

HWY_BEFORE_NAMESPACE();
namespace brigade::kernels::cpu::HWY_NAMESPACE {
namespace {
HWY_INLINE Vector every(float x) { return hn::Set(Floats(), x); }

// The sum of float, float16 or bfloat16 elements.
template <class T>
HWY_INLINE double sum_elements(const T* x, int64_t n) {
  return sum_of(n, [=](int64_t i, auto load) HWY_ATTR { return load(x + i); });
}
template <class T>
HWY_INLINE void add_elements(const T* x, float* sums, int64_t n) {
  for_vectors(n, [=](int64_t i, auto load, auto store) HWY_ATTR { store(load(sums + i) + load(x + i), sums + i); });
}

template <class T>
HWY_INLINE double sum_distances_of(const T* x, float center, int64_t n) {
  const Vector from = every(center);
  return sum_of(n, [=](int64_t i, auto load) HWY_ATTR { return load(x + i) - from; });
}
template <class T>
HWY_INLINE DistanceSums sum_distances_and_squares_of(const T* x, float center, int64_t n) {
  const Floats d;
  const Vector from = every(center);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  DistanceSums total;
  // Sums of blocks, as in sum_of.
  const int64_t block = 64 * 4 * lanes;
  for (int64_t first = 0; first < n; first += block) {
    const int64_t count = std::min(block, n - first);
    Vector distances[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
    Vector squares[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
    const auto take = [&](int which, Vector distance) HWY_ATTR {
      distances[which] = distances[which] + distance;
      squares[which] = hn::MulAdd(distance, distance, squares[which]);
    };
    int64_t i = 0;
    for (; i + 4 * lanes <= count; i += 4 * lanes) {
      const TwoVectors one = load_two(x + first + i) - from;
      const TwoVectors two = load_two(x + first + i + 2 * lanes) - from;
      take(0, one.a);
      take(1, one.b);
      take(2, two.a);
      take(3, two.b);
    }
    for (; i < count; i += lanes) {
      const auto is_there = hn::FirstN(d, static_cast<size_t>(std::min(lanes, count - i)));
      take(0, hn::IfThenElseZero(is_there, load_part(x + first + i, std::min(lanes, count - i)) - from));
    }
    const auto all = [d](const Vector(&of)[4])
                         HWY_ATTR { return hn::GetLane(hn::SumOfLanes(d, (of[0] + of[1]) + (of[2] + of[3]))); };
    total.distances += static_cast<double>(all(distances));
    total.squares += static_cast<double>(all(squares));
  }
  return total;
}
template <class T>
HWY_INLINE void add_distances_of(const T* x, const float* centers, float* distances, int64_t n) {
  for_vectors(n, [=](int64_t i, auto load, auto store)
                     HWY_ATTR { store(load(distances + i) + (load(x + i) - load(centers + i)), distances + i); });
}
template <class T>
HWY_INLINE void add_squares_of(const T* x, const float* centers, float* distances, float* squares, int64_t n) {
  for_vectors(n, [=](int64_t i, auto load, auto store) HWY_ATTR {
    const Vector distance = load(x + i) - load(centers + i);
    store(load(distances + i) + distance, distances + i);
    store(hn::MulAdd(distance, distance, load(squares + i)), squares + i);
  });
}
}  // namespace

double sum_loop(const float* x, int64_t n) { return sum_elements(x, n); }
double sum_float16_loop(const float16* x, int64_t n) { return sum_elements(x, n); }
double sum_bfloat16_loop(const bfloat16* x, int64_t n) { return sum_elements(x, n); }
double sum_of_squares_loop(const float* x, int64_t n) {
  const Floats d;
  // Each lane sums 256 squares in float32, so that large squares do not overflow; the total is in double.
  constexpr int64_t kBlock = 64 * 4 * hn::MaxLanes(Floats());
  HWY_ALIGN float lanes[hn::MaxLanes(Floats())];
  double total = 0;
  for (int64_t first = 0; first < n; first += kBlock) {
    const Vector squares = combine_vectors(
        std::min(kBlock, n - first), hn::Zero(d),
        [&](int64_t i, auto load) HWY_ATTR {
          const auto v = load(x + first + i);
          return v * v;
        },
        [](auto a, auto b) HWY_ATTR { return a + b; });
    hn::Store(squares, d, lanes);
    for (size_t i = 0; i < hn::Lanes(d); ++i)
      total += static_cast<double>(lanes[i]);
  }
  return total;
}
double sum_distances_float_loop(const float* x, float center, int64_t n) { return sum_distances_of(x, center, n); }
DistanceSums sum_distances_and_squares_float_loop(const float* x, float center, int64_t n) {
  return sum_distances_and_squares_of(x, center, n);
}
void add_distances_float_loop(const float* x, const float* centers, float* distances, int64_t n) {
  add_distances_of(x, centers, distances, n);
}
void add_squares_float_loop(const float* x, const float* centers, float* distances, float* squares, int64_t n) {
  add_squares_of(x, centers, distances, squares, n);
}
double sum_distances_float16_loop(const float16* x, float center, int64_t n) { return sum_distances_of(x, center, n); }
DistanceSums sum_distances_and_squares_float16_loop(const float16* x, float center, int64_t n) {
  return sum_distances_and_squares_of(x, center, n);
}
void add_distances_float16_loop(const float16* x, const float* centers, float* distances, int64_t n) {
  add_distances_of(x, centers, distances, n);
}
void add_squares_float16_loop(const float16* x, const float* centers, float* distances, float* squares, int64_t n) {
  add_squares_of(x, centers, distances, squares, n);
}
double sum_distances_bfloat16_loop(const bfloat16* x, float center, int64_t n) {
  return sum_distances_of(x, center, n);
}
DistanceSums sum_distances_and_squares_bfloat16_loop(const bfloat16* x, float center, int64_t n) {
  return sum_distances_and_squares_of(x, center, n);
}
void add_distances_bfloat16_loop(const bfloat16* x, const float* centers, float* distances, int64_t n) {
  add_distances_of(x, centers, distances, n);
}
void add_squares_bfloat16_loop(const bfloat16* x, const float* centers, float* distances, float* squares, int64_t n) {
  add_squares_of(x, centers, distances, squares, n);
}
double sum_squares_loop(const float* x, float center, int64_t n) {
  const Vector from = every(center);
  return sum_of(n, [=](int64_t i, auto load) HWY_ATTR {
    const auto distance = load(x + i) - from;
    return distance * distance;
  });
}
double dot_distances_loop(const float* a, const float* x, float center, int64_t n) {
  const Vector from = every(center);
  return sum_of(n, [=](int64_t i, auto load) HWY_ATTR { return load(a + i) * (load(x + i) - from); });
}
void add_loop(const float* x, float* sums, int64_t n) { add_elements(x, sums, n); }
void add_float16_loop(const float16* x, float* sums, int64_t n) { add_elements(x, sums, n); }
void add_bfloat16_loop(const bfloat16* x, float* sums, int64_t n) { add_elements(x, sums, n); }
void normalize_loop(const float* x, float center, float scale, float shift, float* y, int64_t n) {
  const Vector from = every(center);
  const Vector times = every(scale);
  const Vector plus = every(shift);
  for_vectors(
      n, [=](int64_t i, auto load, auto store) HWY_ATTR { store(hn::MulAdd(load(x + i) - from, times, plus), y + i); });
}
void norm_gradient_loop(const float* a, const float* x, float center, float scale, float factor, float less, float pull,
                        float* out, int64_t n) {
  const Vector from = every(center);
  const Vector outer = every(scale);
  const Vector times = every(factor);
  const Vector minus = every(less);
  const Vector slope = every(pull);
  for_vectors(n, [=](int64_t i, auto load, auto store) HWY_ATTR {
    const Vector part = hn::MulSub(load(a + i), times, minus);
    store(outer * hn::NegMulAdd(load(x + i) - from, slope, part), out + i);
  });
}

}  // namespace brigade::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brigade::kernels::cpu {

HWY_EXPORT(sum_loop);
HWY_EXPORT(sum_float16_loop);
HWY_EXPORT(sum_bfloat16_loop);
HWY_EXPORT(sum_of_squares_loop);
HWY_EXPORT(sum_squares_loop);
HWY_EXPORT(sum_distances_float_loop);
HWY_EXPORT(sum_distances_and_squares_float_loop);
HWY_EXPORT(add_distances_float_loop);
HWY_EXPORT(add_squares_float_loop);
HWY_EXPORT(sum_distances_float16_loop);
HWY_EXPORT(sum_distances_and_squares_float16_loop);
HWY_EXPORT(add_distances_float16_loop);
HWY_EXPORT(add_squares_float16_loop);
HWY_EXPORT(sum_distances_bfloat16_loop);
HWY_EXPORT(sum_distances_and_squares_bfloat16_loop);
HWY_EXPORT(add_distances_bfloat16_loop);
HWY_EXPORT(add_squares_bfloat16_loop);
HWY_EXPORT(dot_distances_loop);
HWY_EXPORT(add_loop);
HWY_EXPORT(add_float16_loop);
HWY_EXPORT(add_bfloat16_loop);
HWY_EXPORT(normalize_loop);
HWY_EXPORT(norm_gradient_loop);

double sum(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(sum_loop)(x, n); }
double sum(const float16* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(sum_float16_loop)(x, n); }
double sum(const bfloat16* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(sum_bfloat16_loop)(x, n); }
double sum_of_squares(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(sum_of_squares_loop)(x, n); }
double sum_distances(const float* x, float center, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(sum_distances_float_loop)(x, center, n);
}
DistanceSums sum_distances_and_squares(const float* x, float center, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(sum_distances_and_squares_float_loop)(x, center, n);
}
void add_distances(const float* x, const float* centers, float* distances, int64_t n) {
  HWY_DYNAMIC_DISPATCH(add_distances_float_loop)(x, centers, distances, n);
}
void add_distances(const float* x, const float* centers, float* distances, float* squares, int64_t n) {
  HWY_DYNAMIC_DISPATCH(add_squares_float_loop)(x, centers, distances, squares, n);
}
double sum_distances(const float16* x, float center, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(sum_distances_float16_loop)(x, center, n);
}
DistanceSums sum_distances_and_squares(const float16* x, float center, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(sum_distances_and_squares_float16_loop)(x, center, n);
}
void add_distances(const float16* x, const float* centers, float* distances, int64_t n) {
  HWY_DYNAMIC_DISPATCH(add_distances_float16_loop)(x, centers, distances, n);
}
void add_distances(const float16* x, const float* centers, float* distances, float* squares, int64_t n) {
  HWY_DYNAMIC_DISPATCH(add_squares_float16_loop)(x, centers, distances, squares, n);
}
double sum_distances(const bfloat16* x, float center, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(sum_distances_bfloat16_loop)(x, center, n);
}
DistanceSums sum_distances_and_squares(const bfloat16* x, float center, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(sum_distances_and_squares_bfloat16_loop)(x, center, n);
}
void add_distances(const bfloat16* x, const float* centers, float* distances, int64_t n) {
  HWY_DYNAMIC_DISPATCH(add_distances_bfloat16_loop)(x, centers, distances, n);
}
void add_distances(const bfloat16* x, const float* centers, float* distances, float* squares, int64_t n) {
  HWY_DYNAMIC_DISPATCH(add_squares_bfloat16_loop)(x, centers, distances, squares, n);
}
double sum_squares(const float* x, float center, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(sum_squares_loop)(x, center, n);
}
double dot_distances(const float* a, const float* x, float center, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(dot_distances_loop)(a, x, center, n);
}
void add(const float* x, float* sums, int64_t n) { HWY_DYNAMIC_DISPATCH(add_loop)(x, sums, n); }
void add(const float16* x, float* sums, int64_t n) { HWY_DYNAMIC_DISPATCH(add_float16_loop)(x, sums, n); }
void add(const bfloat16* x, float* sums, int64_t n) { HWY_DYNAMIC_DISPATCH(add_bfloat16_loop)(x, sums, n); }
void normalize(const float* x, float center, float scale, float shift, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(normalize_loop)(x, center, scale, shift, y, n);
}
void norm_gradient(const float* a, const float* x, float center, float scale, float factor, float less, float pull,
                   float* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(norm_gradient_loop)(a, x, center, scale, factor, less, pull, out, n);
}

double sum(const double* x, int64_t n) {
  return long_sum<double>(0, n, [=](int64_t i) { return x[i]; });
}
double dot(const double* a, const double* b, int64_t n) {
  return long_sum<double>(0, n, [=](int64_t i) { return a[i] * b[i]; });
}
double sum_distances(const double* x, double center, int64_t n) {
  return long_sum<double>(0, n, [=](int64_t i) { return x[i] - center; });
}
double sum_squares(const double* x, double center, int64_t n) {
  return long_sum<double>(0, n, [=](int64_t i) { return (x[i] - center) * (x[i] - center); });
}
DistanceSums sum_distances_and_squares(const double* x, double center, int64_t n) {
  return {sum_distances(x, center, n), sum_squares(x, center, n)};
}
double dot_distances(const double* a, const double* x, double center, int64_t n) {
  return long_sum<double>(0, n, [=](int64_t i) { return a[i] * (x[i] - center); });
}
double dot_products(const double* a, const double* b, const double* x, double center, int64_t n) {
  return long_sum<double>(0, n, [=](int64_t i) { return a[i] * b[i] * (x[i] - center); });
}
void add(const double* x, double* sums, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    sums[i] += x[i];
}
void add_distances(const double* x, const double* centers, double* distances, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    distances[i] += x[i] - centers[i];
}
void add_distances(const double* x, const double* centers, double* distances, double* squares, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const double distance = x[i] - centers[i];
    distances[i] += distance;
    squares[i] += distance * distance;
  }
}
void normalize(const double* x, double center, double scale, double shift, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    y[i] = (x[i] - center) * scale + shift;
}
void normalize(const double* x, double center, double scale, const double* gains, const double* shifts, double* y,
               int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    y[i] = (x[i] - center) * scale * gains[i] + shifts[i];
}
void norm_gradient(const double* a, const double* x, double center, double scale, double factor, double less,
                   double pull, double* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    out[i] = scale * (a[i] * factor - less - (x[i] - center) * pull);
}
void norm_gradient(const double* a, const double* x, double center, double scale, const double* factors, double less,
                   double pull, double* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    out[i] = scale * (a[i] * factors[i] - less - (x[i] - center) * pull);
}
void add_products(const double* a, const double* x, double center, double scale, double* sums, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    sums[i] += a[i] * ((x[i] - center) * scale);
}

}  // namespace brigade::kernels::cpu
#endif
