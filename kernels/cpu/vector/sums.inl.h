// Sums and maxima of rows, computed in float32 with several vectors in flight. Compiled for each instruction set.
#if defined(BRIGADE_KERNELS_CPU_VECTOR_SUMS) == defined(HWY_TARGET_TOGGLE)
#ifdef BRIGADE_KERNELS_CPU_VECTOR_SUMS
#undef BRIGADE_KERNELS_CPU_VECTOR_SUMS
#else
#define BRIGADE_KERNELS_CPU_VECTOR_SUMS
#endif

#include <brigade/kernels/cpu/vector/elements.inl.h>
#include <brigade/kernels/cpu/vector/math.inl.h>

#include <algorithm>
#include <cstdint>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace brigade::kernels::cpu::HWY_NAMESPACE {

// Loads and stores of whole vectors, and of a last vector with `count` elements.
HWY_INLINE auto whole_loads() {
  return [](const auto* from) HWY_ATTR { return load_vector(from); };
}
HWY_INLINE auto whole_stores() {
  return [](auto x, auto* to) HWY_ATTR { store_vector(x, to); };
}
HWY_INLINE auto part_loads(int64_t count) {
  return [count](const auto* from) HWY_ATTR { return load_part(from, count); };
}
HWY_INLINE auto part_stores(int64_t count) {
  return [count](auto x, auto* to) HWY_ATTR { store_part(x, to, count); };
}

// Combines f(i, load) over vectors of elements [i, i + lanes), of up to `n` elements, in four running vectors. `load`
// loads one vector at element i, or two (load_two(), so f takes arrays of one dtype), and f returns as many. Lanes
// beyond the end have the value `nothing`.
template <class F, class Combine>
HWY_INLINE Vector combine_vectors(int64_t n, Vector nothing, F f, Combine combine) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto two = [](const auto* from) HWY_ATTR { return load_two(from); };
  Vector a = nothing;
  Vector b = nothing;
  Vector c = nothing;
  Vector e = nothing;
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const TwoVectors first = f(i, two);
    const TwoVectors second = f(i + 2 * lanes, two);
    a = combine(a, first.a);
    b = combine(b, first.b);
    c = combine(c, second.a);
    e = combine(e, second.b);
  }
  a = combine(combine(a, b), combine(c, e));
  for (; i + lanes <= n; i += lanes)
    a = combine(a, f(i, whole_loads()));
  if (i < n) {
    const int64_t rest = n - i;
    const Vector last = f(i, part_loads(rest));
    a = combine(a, hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(rest)), last, nothing));
  }
  return a;
}

// The sum of f(i, load) over n elements: blocks in float32, with 64 additions per lane, their total in double, so that
// long rows do not lose digits.
template <class F>
HWY_INLINE double sum_of(int64_t n, F f) {
  const Floats d;
  constexpr int64_t kBlock = 64 * 4 * hn::MaxLanes(Floats());
  double total = 0;
  for (int64_t first = 0; first < n; first += kBlock) {
    const Vector sums = combine_vectors(
        std::min(kBlock, n - first), hn::Zero(d), [&](int64_t i, auto load) HWY_ATTR { return f(first + i, load); },
        [](auto x, auto y) HWY_ATTR { return x + y; });
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sums)));
  }
  return total;
}

// The largest element; NaNs are skipped.
template <class T>
HWY_INLINE float largest_of(const T* x, int64_t n) {
  const Floats d;
  const Vector nothing = hn::Set(d, -std::numeric_limits<float>::infinity());
  const Vector found = combine_vectors(
      n, nothing, [x](int64_t i, auto load) HWY_ATTR { return load(x + i); },
      [](auto best, auto v) HWY_ATTR { return hn::IfThenElse(hn::Gt(v, best), v, best); });
  return hn::GetLane(hn::MaxOfLanes(d, found));
}

// body(i, load, store) for vectors that cover n elements.
template <class Body>
HWY_INLINE void for_vectors(int64_t n, Body body) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    body(i, whole_loads(), whole_stores());
  if (i < n) body(i, part_loads(n - i), part_stores(n - i));
}

// y = f(i, load), two vectors at a time, in the order of load_two(): f takes arrays of y's dtype. The lower half of a
// NaN is 0, as in store_two().
template <class T, class F>
HWY_INLINE void write_in_twos(int64_t n, T* y, F f) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Floats()));
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes)
    store_two(f(i, [](const auto* from) HWY_ATTR { return load_two(from); }), y + i);
  for (; i + lanes <= n; i += lanes)
    store_vector(f(i, whole_loads()), y + i);
  if (i < n) store_part(f(i, part_loads(n - i)), y + i, n - i);
}

// The same in memory order: f takes arrays of any dtypes.
template <class T, class F>
HWY_INLINE void write_vectors(int64_t n, T* y, F f) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Floats()));
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes)
    store_vectors_of_usual_nans(f(i, whole_loads()), f(i + lanes, whole_loads()), y + i);
  for (; i + lanes <= n; i += lanes)
    store_vector(f(i, whole_loads()), y + i);
  if (i < n) store_part(f(i, part_loads(n - i)), y + i, n - i);
}

}  // namespace brigade::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
