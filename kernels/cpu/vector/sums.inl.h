// Sums and largest elements of rows that are computed in float32, with several vectors under way at once. Compiled
// for each instruction set.
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

// Combines f(i, load) over vectors of elements [i, i + lanes), of up to `n` elements, in four
// running vectors. `load` loads a vector of an array from its element i. Lanes beyond the end take
// the value `nothing`.
template <class F, class Combine>
HWY_INLINE Vector combine_vectors(int64_t n, Vector nothing, F f, Combine combine) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto whole = [](const auto* from) HWY_ATTR { return load_vector(from); };
  Vector a = nothing;
  Vector b = nothing;
  Vector c = nothing;
  Vector e = nothing;
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = combine(a, f(i, whole));
    b = combine(b, f(i + lanes, whole));
    c = combine(c, f(i + 2 * lanes, whole));
    e = combine(e, f(i + 3 * lanes, whole));
  }
  a = combine(combine(a, b), combine(c, e));
  for (; i + lanes <= n; i += lanes)
    a = combine(a, f(i, whole));
  if (i < n) {
    const int64_t rest = n - i;
    const Vector last = f(i, [rest](const auto* from) HWY_ATTR { return load_part(from, rest); });
    a = combine(a, hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(rest)), last, nothing));
  }
  return a;
}

// The sum of f(i, load) over n elements: of blocks in float32, 64 additions in each lane, of the
// blocks in double, so that no digits are lost over the length.
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

// The largest element; a NaN is passed over.
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
  for (; i + lanes <= n; i += lanes) {
    body(
        i, [](const auto* from) HWY_ATTR { return load_vector(from); },
        [](auto x, auto* to) HWY_ATTR { store_vector(x, to); });
  }
  if (i == n) return;
  const int64_t rest = n - i;
  body(
      i, [rest](const auto* from) HWY_ATTR { return load_part(from, rest); },
      [rest](auto x, auto* to) HWY_ATTR { store_part(x, to, rest); });
}

}  // namespace brigade::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
