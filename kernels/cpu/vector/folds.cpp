// The loops of reductions: each fold defines a function of an element, and how two values are joined.
#include <brigade/kernels/cpu/vector/targets.h>

#define HWY_TARGET_INCLUDE <brigade/kernels/cpu/vector/folds.cpp>
#include <hwy/foreach_target.h>
// After foreach_target.h:
#include <brigade/kernels/cpu/vector/sums.h>
#include <brigade/kernels/cpu/vector/sums.inl.h>

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace brigade::kernels::cpu::HWY_NAMESPACE {
namespace {

using V = Vector;

constexpr bool is_sum(Fold fold) { return fold == Fold::Nonzeros || fold == Fold::Sizes || fold == Fold::Squares; }
// For the folds other than sums and the product: whether the larger value wins.
constexpr bool is_largest(Fold fold) { return fold == Fold::Largest || fold == Fold::LargestSize; }

// The fold of no elements.
constexpr float nothing(Fold fold) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (fold == Fold::Largest) return -kInfinity;
  if (fold == Fold::Smallest || fold == Fold::SmallestSize) return kInfinity;
  return fold == Fold::Product ? 1 : 0;
}

template <Fold fold>
HWY_INLINE V of_element(V x) {
  const Floats d;
  if constexpr (fold == Fold::Nonzeros) return hn::IfThenZeroElse(hn::Eq(x, hn::Zero(d)), hn::Set(d, 1));
  if constexpr (fold == Fold::Squares) return x * x;
  if constexpr (fold == Fold::Sizes || fold == Fold::LargestSize || fold == Fold::SmallestSize) return hn::Abs(x);
  return x;
}

template <Fold fold>
HWY_INLINE V join(V known, V x) {
  if constexpr (fold == Fold::Product) return known * x;
  if constexpr (is_sum(fold)) return known + x;
  const auto better = is_largest(fold) ? hn::Gt(x, known) : hn::Lt(x, known);
  return hn::IfThenElse(hn::Or(better, hn::IsNaN(x)), x, known);
}

// As join, but a NaN may be lost.
template <Fold fold>
HWY_INLINE V quick_join(V known, V x) {
  if constexpr (is_largest(fold)) return hn::Max(known, x);
  return hn::Min(known, x);
}

template <Fold fold, class T, class Load>
HWY_INLINE auto element_of(const T* x, int64_t i, Load load) {
  return apply([](V v) HWY_ATTR { return of_element<fold>(v); }, load(x + i));
}
HWY_INLINE void add_up(V x, V (&sums)[2]) { sums[0] = sums[0] + x; }
HWY_INLINE void add_up(TwoVectors x, V (&sums)[2]) {
  sums[0] = sums[0] + x.a;
  sums[1] = sums[1] + x.b;
}

// Reduces the lanes of a vector: multiplies the upper half into the lower half until one lane is left.
template <class D, class W>
HWY_INLINE float product_of_lanes([[maybe_unused]] D d, W x) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (hn::MaxLanes(d) > 1) {
    const hn::Half<D> half;
    return product_of_lanes(half, hn::Mul(hn::LowerHalf(half, x), hn::UpperHalf(half, x)));
  }
#endif
  return hn::GetLane(x);
}
template <Fold fold>
HWY_INLINE float fold_lanes(V x) {
  const Floats d;
  HWY_ALIGN float lanes[hn::MaxLanes(d)];
  hn::Store(x, d, lanes);
  for (size_t width = hn::Lanes(d) / 2; width > 0; width /= 2) {
    for (size_t i = 0; i < width; ++i) {
      const float other = lanes[i + width];
      const bool is_better = is_largest(fold) ? other > lanes[i] : other < lanes[i];
      lanes[i] = is_better || other != other ? other : lanes[i];
    }
  }
  return lanes[0];
}

// Largest or smallest, with a fast pass if there is no NaN. A NaN shows in the sum of all elements. (The sum is also
// NaN for infinities of both signs.)
template <Fold fold, class T>
HWY_INLINE float extreme_row_of(const T* x, int64_t n) {
  const Floats d;
  const V none = hn::Set(d, nothing(fold));
  V sums[2] = {hn::Zero(d), hn::Zero(d)};
  const V found = combine_vectors(
      n, none,
      [&](int64_t i, auto load) HWY_ATTR {
        const auto v = element_of<fold>(x, i, load);
        add_up(v, sums);
        return v;
      },
      [](V known, V v) HWY_ATTR { return quick_join<fold>(known, v); });
  if (!std::isnan(hn::GetLane(hn::SumOfLanes(d, sums[0] + sums[1])))) {
    return hn::GetLane(is_largest(fold) ? hn::MaxOfLanes(d, found) : hn::MinOfLanes(d, found));
  }
  return fold_lanes<fold>(combine_vectors(
      n, none, [x](int64_t i, auto load) HWY_ATTR { return element_of<fold>(x, i, load); },
      [](V known, V v) HWY_ATTR { return join<fold>(known, v); }));
}

// Halves as signed integer words: twice as many per vector, without conversion.
using HalfWords = hn::ScalableTag<int16_t>;
using WordVector = hn::Vec<HalfWords>;
template <class T>
constexpr int16_t infinity_of() {
  return std::is_same_v<T, float16> ? 0x7C00 : 0x7F80;
}
HWY_INLINE WordVector without_signs(WordVector words) { return hn::And(words, hn::Set(HalfWords(), int16_t{0x7FFF})); }
// Maps words to integers with the order of the numbers, -0 below 0 and NaNs at both ends: inverts the other bits if the
// sign bit is set. It is its own inverse.
HWY_INLINE WordVector in_order(WordVector words) { return hn::Xor(words, without_signs(hn::BroadcastSignBit(words))); }

template <Fold fold, class T>
HWY_INLINE float extreme_row_of_halves(const T* x, int64_t n) {
  constexpr bool kOfSizes = fold == Fold::LargestSize || fold == Fold::SmallestSize;
  const HalfWords d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto load = [](const int16_t* from) HWY_ATTR {
    const WordVector words = hn::LoadU(HalfWords(), from);
    if constexpr (kOfSizes) return without_signs(words);
    return in_order(words);
  };
  const auto* words = reinterpret_cast<const int16_t*>(x);
  HWY_ALIGN int16_t room[hn::MaxLanes(d)];
  if (n < lanes) {
    std::fill(room, room + lanes, words[0]);
    std::copy_n(words, n, room);
    words = room;
    n = lanes;
  }
  WordVector largest = load(words);
  WordVector smallest = largest;
  const auto take = [&](int64_t i) HWY_ATTR {
    const WordVector v = load(words + i);
    largest = hn::Max(largest, v);
    smallest = hn::Min(smallest, v);
  };
  for (int64_t i = lanes; i + lanes <= n; i += lanes)
    take(i);
  take(n - lanes);  // overlaps the last full vector
  const int16_t high = hn::GetLane(hn::MaxOfLanes(d, largest));
  const int16_t low = hn::GetLane(hn::MinOfLanes(d, smallest));
  if (high > infinity_of<T>() || low < -infinity_of<T>() - 1) return std::numeric_limits<float>::quiet_NaN();
  const int16_t found = is_largest(fold) ? high : low;
  return static_cast<float>(std::bit_cast<T>(static_cast<int16_t>(found < 0 ? found ^ 0x7FFF : found)));
}

template <Fold fold, class T>
HWY_INLINE float fold_row_of(const T* x, int64_t n) {
  const auto element = [x](int64_t i, auto load) HWY_ATTR { return element_of<fold>(x, i, load); };
  if constexpr (is_sum(fold)) {
    return static_cast<float>(sum_of(n, element));
  } else if constexpr (fold == Fold::Product) {
    return product_of_lanes(Floats(), combine_vectors(n, hn::Set(Floats(), nothing(fold)), element,
                                                      [](V known, V v) HWY_ATTR { return join<fold>(known, v); }));
  } else if constexpr (sizeof(T) < sizeof(float)) {
    return n > 0 ? extreme_row_of_halves<fold>(x, n) : nothing(fold);
  } else {
    return extreme_row_of<fold>(x, n);
  }
}

template <Fold fold, class T>
HWY_INLINE void fold_into_of(const T* x, float* values, int64_t n) {
  for_vectors(n, [=](int64_t i, auto load, auto store)
                     HWY_ATTR { store(join<fold>(load(values + i), of_element<fold>(load(x + i))), values + i); });
}

// Calls body<fold, T>(x).
template <Fold fold, class Body>
HWY_INLINE auto visit_dtype_of(DType dtype, const void* x, Body body) {
  return visit_floats(dtype,
                      [&]<class T>(T) HWY_ATTR { return body.template operator()<fold>(static_cast<const T*>(x)); });
}
template <class Body>
HWY_INLINE auto visit_fold(Fold fold, DType dtype, const void* x, Body body) {
  switch (fold) {
    case Fold::Largest: return visit_dtype_of<Fold::Largest>(dtype, x, body);
    case Fold::Smallest: return visit_dtype_of<Fold::Smallest>(dtype, x, body);
    case Fold::Product: return visit_dtype_of<Fold::Product>(dtype, x, body);
    case Fold::Nonzeros: return visit_dtype_of<Fold::Nonzeros>(dtype, x, body);
    case Fold::Sizes: return visit_dtype_of<Fold::Sizes>(dtype, x, body);
    case Fold::Squares: return visit_dtype_of<Fold::Squares>(dtype, x, body);
    case Fold::LargestSize: return visit_dtype_of<Fold::LargestSize>(dtype, x, body);
    default: return visit_dtype_of<Fold::SmallestSize>(dtype, x, body);
  }
}

// The first element for which found(vector) is true; tests four vectors at once until one has a match.
template <class D, class E, class Found>
HWY_INLINE int64_t first_where(D d, const E* x, int64_t n, Found found) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto at = [=](int64_t i) HWY_ATTR { return found(hn::LoadU(d, x + i)); };
  int64_t i = 0;
  while (i + 4 * lanes <= n &&
         hn::AllFalse(d, hn::Or(hn::Or(at(i), at(i + lanes)), hn::Or(at(i + 2 * lanes), at(i + 3 * lanes)))))
    i += 4 * lanes;
  for (; i < n; i += lanes) {
    const int64_t count = std::min(lanes, n - i);
    HWY_ALIGN E room[hn::MaxLanes(d)] = {};
    if (count < lanes) std::copy_n(x + i, count, room);
    const auto place = hn::FindFirstTrue(d, found(hn::LoadU(d, count < lanes ? room : x + i)));
    if (place >= 0 && place < count) return i + place;
  }
  return n;
}

HWY_INLINE int64_t first_place_of(const float* x, float value, int64_t n) {
  const Floats d;
  if (std::isnan(value)) return first_where(d, x, n, [](V v) HWY_ATTR { return hn::IsNaN(v); });
  const V wanted = hn::Set(d, value);
  return first_where(d, x, n, [wanted](V v) HWY_ATTR { return hn::Eq(v, wanted); });
}
template <class T>
HWY_INLINE int64_t first_place_of(const T* x, float value, int64_t n) {
  const HalfWords d;
  const auto* const words = reinterpret_cast<const int16_t*>(x);
  const auto wanted = hn::Set(d, std::isnan(value) ? infinity_of<T>() : std::bit_cast<int16_t>(static_cast<T>(value)));
  if (std::isnan(value))
    return first_where(d, words, n, [=](WordVector v) HWY_ATTR { return hn::Gt(without_signs(v), wanted); });
  if (value == 0)  // of either sign
    return first_where(d, words, n, [=](WordVector v) HWY_ATTR { return hn::Eq(without_signs(v), hn::Zero(d)); });
  return first_where(d, words, n, [=](WordVector v) HWY_ATTR { return hn::Eq(v, wanted); });
}

}  // namespace

float fold_row_loop(Fold fold, DType dtype, const void* x, int64_t n) {
  return visit_fold(fold, dtype, x,
                    [=]<Fold known, class T>(const T* elements) HWY_ATTR { return fold_row_of<known>(elements, n); });
}
void fold_into_loop(Fold fold, DType dtype, const void* x, float* values, int64_t n) {
  visit_fold(fold, dtype, x,
             [=]<Fold known, class T>(const T* elements) HWY_ATTR { fold_into_of<known>(elements, values, n); });
}
int64_t first_place_loop(DType dtype, const void* x, float value, int64_t n) {
  return visit_floats(dtype, [=]<class T>(T) HWY_ATTR { return first_place_of(static_cast<const T*>(x), value, n); });
}

}  // namespace brigade::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brigade::kernels::cpu {

HWY_EXPORT(fold_row_loop);
HWY_EXPORT(fold_into_loop);
HWY_EXPORT(first_place_loop);

float fold_row(Fold fold, DType dtype, const void* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(fold_row_loop)(fold, dtype, x, n);
}
void fold_into(Fold fold, DType dtype, const void* x, float* values, int64_t n) {
  HWY_DYNAMIC_DISPATCH(fold_into_loop)(fold, dtype, x, values, n);
}
int64_t first_place(DType dtype, const void* x, float value, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(first_place_loop)(dtype, x, value, n);
}

}  // namespace brigade::kernels::cpu
#endif
