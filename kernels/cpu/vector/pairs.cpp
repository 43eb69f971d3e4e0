// Adds the elements of two ranks and sums their squares in double: large squares overflow float, and the inputs are
// overwritten, so they cannot be measured again.
#include <brigade/kernels/cpu/vector/targets.h>

#define HWY_TARGET_INCLUDE <brigade/kernels/cpu/vector/pairs.cpp>
#include <hwy/foreach_target.h>
// After foreach_target.h:
#include <brigade/kernels/cpu/vector/elementwise.h>
#include <brigade/kernels/cpu/vector/sums.inl.h>

HWY_BEFORE_NAMESPACE();
namespace brigade::kernels::cpu::HWY_NAMESPACE {
namespace {

using Half = hn::Half<Floats>;
using Doubles = hn::Rebind<double, Half>;

HWY_INLINE void add_squares(hn::Vec<Half> x, hn::Vec<Doubles>& sum) {
  const auto exact = hn::PromoteTo(Doubles(), x);
  sum = hn::MulAdd(exact, exact, sum);
}

// The lower and upper halves have separate sums.
HWY_INLINE void add_squares(Vector x, hn::Vec<Doubles>& low, [[maybe_unused]] hn::Vec<Doubles>& high) {
  add_squares(hn::LowerHalf(Half(), x), low);
#if HWY_TARGET != HWY_SCALAR
  add_squares(hn::UpperHalf(Half(), x), high);
#endif
}

template <bool kMeasures>
HWY_INLINE PairSquares add_pair_of(const float* a, const float* b, float factor, float* x, float* y, int64_t n) {
  const Doubles d;
  const Vector times = hn::Set(Floats(), factor);
  auto low_a = hn::Zero(d);
  auto high_a = hn::Zero(d);
  auto low_b = hn::Zero(d);
  auto high_b = hn::Zero(d);
  for_vectors(n, [&](int64_t i, auto load, auto store) HWY_ATTR {
    const Vector one = load(a + i);
    const Vector other = load(b + i);
    if constexpr (kMeasures) {
      add_squares(one, low_a, high_a);
      add_squares(other, low_b, high_b);
    }
    const Vector result = (one + other) * times;
    store(result, x + i);
    store(result, y + i);
  });
  return {hn::GetLane(hn::SumOfLanes(d, low_a + high_a)), hn::GetLane(hn::SumOfLanes(d, low_b + high_b))};
}

}  // namespace

void add_pair_loop(const float* a, const float* b, float factor, float* x, float* y, int64_t n) {
  add_pair_of<false>(a, b, factor, x, y, n);
}
PairSquares add_and_measure_pair_loop(const float* a, const float* b, float factor, float* x, float* y, int64_t n) {
  return add_pair_of<true>(a, b, factor, x, y, n);
}

}  // namespace brigade::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brigade::kernels::cpu {

HWY_EXPORT(add_pair_loop);
HWY_EXPORT(add_and_measure_pair_loop);

void add_pair(const float* a, const float* b, float factor, float* x, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(add_pair_loop)(a, b, factor, x, y, n);
}
PairSquares add_and_measure_pair(const float* a, const float* b, float factor, float* x, float* y, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(add_and_measure_pair_loop)(a, b, factor, x, y, n);
}

}  // namespace brigade::kernels::cpu
#endif
