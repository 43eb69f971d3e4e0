// Sums and largest elements of rows of float32, with several vectors under way at once. Compiled for each instruction
// set.
#if defined(BRIGADE_KERNELS_CPU_VECTOR_SUMS) == defined(HWY_TARGET_TOGGLE)
#ifdef BRIGADE_KERNELS_CPU_VECTOR_SUMS
#undef BRIGADE_KERNELS_CPU_VECTOR_SUMS
#else
#define BRIGADE_KERNELS_CPU_VECTOR_SUMS
#endif

#include <brigade/kernels/cpu/vector/math.inl.h>

#include <algorithm>
#include <cstdint>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace brigade::kernels::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Numbers = hn::ScalableTag<float>;
using NumberVector = hn::Vec<Numbers>;

// The first `count` elements, then zeros.
HWY_INLINE NumberVector load_part(const float* from, int64_t count) {
  const Numbers d;
  HWY_ALIGN float room[hn::MaxLanes(d)] = {};
  std::copy_n(from, count, room);
  return hn::Load(d, room);
}
HWY_INLINE void store_part(NumberVector x, float* to, int64_t count) {
  const Numbers d;
  HWY_ALIGN float room[hn::MaxLanes(d)];
  hn::Store(x, d, room);
  std::copy_n(room, count, to);
}

// Combines f(i, load) over vectors of elements [i, i + lanes), of up to `n` elements, in four running vectors. `load`
// loads a vector of an array from its element i. Lanes beyond the end take the value `nothing`.
template <class F, class Combine>
HWY_INLINE NumberVector combine_vectors(int64_t n, NumberVector nothing, F f, Combine combine) {
  const Numbers d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto whole = [d](const float* from) HWY_ATTR { return hn::LoadU(d, from); };
  NumberVector a = nothing;
  NumberVector b = nothing;
  NumberVector c = nothing;
  NumberVector e = nothing;
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
    const NumberVector last = f(i, [rest](const float* from) HWY_ATTR { return load_part(from, rest); });
    a = combine(a, hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(rest)), last, nothing));
  }
  return a;
}

// The sum of f(i, load) over n elements: of blocks in float32, 64 additions in each lane, of the blocks in double, so
// that no digits are lost over the length.
template <class F>
HWY_INLINE double sum_of(int64_t n, F f) {
  const Numbers d;
  constexpr int64_t kBlock = 64 * 4 * hn::MaxLanes(Numbers());
  double total = 0;
  for (int64_t first = 0; first < n; first += kBlock) {
    const NumberVector sums = combine_vectors(
        std::min(kBlock, n - first), hn::Zero(d), [&](int64_t i, auto load) HWY_ATTR { return f(first + i, load); },
        [](auto x, auto y) HWY_ATTR { return x + y; });
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sums)));
  }
  return total;
}

// The largest element; a NaN is passed over.
HWY_INLINE float largest_of(const float* x, int64_t n) {
  const Numbers d;
  const NumberVector nothing = hn::Set(d, -std::numeric_limits<float>::infinity());
  const NumberVector found = combine_vectors(
      n, nothing, [x](int64_t i, auto load) HWY_ATTR { return load(x + i); },
      [](auto best, auto v) HWY_ATTR { return hn::IfThenElse(hn::Gt(v, best), v, best); });
  return hn::GetLane(hn::MaxOfLanes(d, found));
}

// body(i, load, store) for vectors that cover n elements.
template <class Body>
HWY_INLINE void for_vectors(int64_t n, Body body) {
  const Numbers d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    body(
        i, [d](const float* from) HWY_ATTR { return hn::LoadU(d, from); },
        [d](auto x, float* to) HWY_ATTR { hn::StoreU(x, d, to); });
  }
  if (i == n) return;
  const int64_t rest = n - i;
  body(
      i, [rest](const float* from) HWY_ATTR { return load_part(from, rest); },
      [rest](auto x, float* to) HWY_ATTR { store_part(x, to, rest); });
}

}  // namespace brigade::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
