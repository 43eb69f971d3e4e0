// Loads arrays of float32, float16 or bfloat16 as float32 vectors, and stores them back; conversion is in registers: to
// nearest, ties to even, NaN to NaN (core/half.h, bit for bit). Compiled for each instruction set.
#if defined(BRIGADE_KERNELS_CPU_VECTOR_ELEMENTS) == defined(HWY_TARGET_TOGGLE)
#ifdef BRIGADE_KERNELS_CPU_VECTOR_ELEMENTS
#undef BRIGADE_KERNELS_CPU_VECTOR_ELEMENTS
#else
#define BRIGADE_KERNELS_CPU_VECTOR_ELEMENTS
#endif

#include <brigade/core/dtype.h>
#include <brigade/core/half.h>

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace brigade::kernels::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Vector = hn::Vec<Floats>;

namespace layout {

using Bits = hn::RebindToUnsigned<Floats>;
using Words = hn::Rebind<uint16_t, Floats>;
#if HWY_TARGET != HWY_SCALAR
using TwiceWords = hn::Repartition<uint16_t, Floats>;
#endif
using BitVector = hn::Vec<Bits>;

HWY_INLINE BitVector every(uint32_t bits) { return hn::Set(Bits(), bits); }
HWY_INLINE Vector as_float(BitVector bits) { return hn::BitCast(Floats(), bits); }
HWY_INLINE BitVector as_bits(Vector x) { return hn::BitCast(Bits(), x); }
HWY_INLINE BitVector choose(hn::Mask<Bits> mask, BitVector yes, BitVector no) { return hn::IfThenElse(mask, yes, no); }
HWY_INLINE BitVector load_words(const void* from) {
  return hn::PromoteTo(Bits(), hn::LoadU(Words(), static_cast<const uint16_t*>(from)));
}
HWY_INLINE void store_words(BitVector bits, void* to) {
  hn::StoreU(hn::TruncateTo(Words(), bits), Words(), static_cast<uint16_t*>(to));
}

// float16 without processor support.
HWY_INLINE Vector from_float16(BitVector bits) {
  const auto sign = hn::ShiftLeft<16>(hn::And(bits, every(0x8000)));
  const auto magnitude = hn::And(bits, every(0x7fff));
  const auto shifted = hn::ShiftLeft<13>(magnitude);
  // A subnormal half counts units of 2^-24.
  const auto small = as_bits(hn::ConvertTo(Floats(), hn::BitCast(hn::RebindToSigned<Floats>(), magnitude)) *
                             hn::Set(Floats(), 0x1p-24F));
  const auto usual = choose(hn::Lt(magnitude, every(0x0400)), small, shifted + every(0x38000000));
  const auto special = hn::Or(shifted, every(0x7f800000));
  return as_float(hn::Or(sign, choose(hn::Gt(magnitude, every(0x7bff)), special, usual)));
}
HWY_INLINE BitVector to_float16(Vector x) {
  const auto bits = as_bits(x);
  const auto sign = hn::And(hn::ShiftRight<16>(bits), every(0x8000));
  const auto magnitude = hn::And(bits, every(0x7fffffff));
  // A subnormal half: the float adder rounds.
  const auto small = as_bits(as_float(magnitude) + hn::Set(Floats(), 0.5F)) - every(0x3f000000);
  const auto odd = hn::And(hn::ShiftRight<13>(magnitude), every(1));
  const auto rounded = hn::ShiftRight<13>(magnitude + every(0xfff) + odd - every(0x38000000));
  auto half = choose(hn::Lt(magnitude, every(0x38800000)), small, rounded);
  half = choose(hn::Gt(magnitude, every(0x477fefff)), every(0x7c00), half);  // rounds to infinity
  const auto nan = hn::Or(every(0x7e00), hn::And(hn::ShiftRight<13>(magnitude), every(0x3ff)));
  return hn::Or(sign, choose(hn::Gt(magnitude, every(0x7f800000)), nan, half));
}

// bfloat16 is the upper half of a float32, after adding the rounding bias.
HWY_INLINE BitVector rounded_to_bfloat16_unless_nan(Vector x) {
  const auto bits = as_bits(x);
#if HWY_TARGET == HWY_AVX3  // where masks are cheap
  return choose(hn::TestBit(bits, every(0x10000)), bits + every(0x8000), bits + every(0x7fff));
#else
  return bits + every(0x7fff) + hn::And(hn::ShiftRight<16>(bits), every(1));
#endif
}
HWY_INLINE BitVector rounded_to_bfloat16(Vector x) {
  const auto quiet = hn::Or(as_bits(x), every(0x400000));
  return choose(hn::RebindMask(Bits(), hn::IsNaN(x)), quiet, rounded_to_bfloat16_unless_nan(x));
}

// The instructions for float16 that AVX2 and above have are in Highway.
constexpr bool kHasFloat16 = HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3;
using Float16s = hn::Rebind<hwy::float16_t, Floats>;

}  // namespace layout

HWY_INLINE Vector load_vector(const float* from) { return hn::LoadU(Floats(), from); }
HWY_INLINE Vector load_vector(const float16* from) {
  if constexpr (layout::kHasFloat16) {
    const layout::Float16s d;
    return hn::PromoteTo(Floats(), hn::LoadU(d, reinterpret_cast<const hwy::float16_t*>(from)));
  } else {
    return layout::from_float16(layout::load_words(from));
  }
}
HWY_INLINE Vector load_vector(const bfloat16* from) {
  return layout::as_float(hn::ShiftLeft<16>(layout::load_words(from)));
}

// The same number in every lane. Any NaN becomes the canonical one, whose lower half is 0.
HWY_INLINE Vector every_lane(float x) {
  return hn::Set(Floats(), std::isnan(x) ? std::numeric_limits<float>::quiet_NaN() : x);
}

HWY_INLINE void store_vector(Vector x, float* to) { hn::StoreU(x, Floats(), to); }
HWY_INLINE void store_vector(Vector x, float16* to) {
  if constexpr (layout::kHasFloat16) {
    const layout::Float16s d;
    hn::StoreU(hn::DemoteTo(d, x), d, reinterpret_cast<hwy::float16_t*>(to));
  } else {
    layout::store_words(layout::to_float16(x), to);
  }
}
HWY_INLINE void store_vector(Vector x, bfloat16* to) {
  layout::store_words(hn::ShiftRight<16>(layout::rounded_to_bfloat16(x)), to);
}

// Stores two consecutive vectors.
template <class T>
HWY_INLINE void store_vectors(Vector first, Vector second, T* to) {
  store_vector(first, to);
  store_vector(second, to + hn::Lanes(Floats()));
}
// The same for vectors whose NaNs have a zero lower half, as in store_two().
template <class T>
HWY_INLINE void store_vectors_of_usual_nans(Vector first, Vector second, T* to) {
  store_vectors(first, second, to);
}
#if HWY_TARGET != HWY_SCALAR
namespace layout {
HWY_INLINE void store_upper_halves(BitVector first, BitVector second, bfloat16* to) {
  const TwiceWords words;
  hn::StoreU(hn::ConcatOdd(words, hn::BitCast(words, second), hn::BitCast(words, first)), words,
             reinterpret_cast<uint16_t*>(to));
}
}  // namespace layout
HWY_INLINE void store_vectors(Vector first, Vector second, bfloat16* to) {
  layout::store_upper_halves(layout::rounded_to_bfloat16(first), layout::rounded_to_bfloat16(second), to);
}
HWY_INLINE void store_vectors_of_usual_nans(Vector first, Vector second, bfloat16* to) {
  layout::store_upper_halves(layout::rounded_to_bfloat16_unless_nan(first),
                             layout::rounded_to_bfloat16_unless_nan(second), to);
}
#endif

// Two vectors of adjacent elements, for elementwise loops: the dtype determines which elements are in which vector.
struct TwoVectors {
  Vector a, b;
};
HWY_INLINE TwoVectors operator+(TwoVectors x, TwoVectors y) { return {x.a + y.a, x.b + y.b}; }
HWY_INLINE TwoVectors operator-(TwoVectors x, Vector y) { return {x.a - y, x.b - y}; }
HWY_INLINE TwoVectors operator*(TwoVectors x, TwoVectors y) { return {x.a * y.a, x.b * y.b}; }
// Applies f to one vector, or to each of two vectors, for loops that take either.
template <class F>
HWY_INLINE Vector apply(F f, Vector x) {
  return f(x);
}
template <class F>
HWY_INLINE TwoVectors apply(F f, TwoVectors x) {
  return {f(x.a), f(x.b)};
}
template <class F>
HWY_INLINE Vector apply(F f, Vector x, Vector y) {
  return f(x, y);
}
template <class F>
HWY_INLINE TwoVectors apply(F f, TwoVectors x, TwoVectors y) {
  return {f(x.a, y.a), f(x.b, y.b)};
}
template <class T>
HWY_INLINE TwoVectors load_two(const T* from) {
  return {load_vector(from), load_vector(from + hn::Lanes(Floats()))};
}
// T must also be the dtype that the numbers were loaded from.
template <class T>
HWY_INLINE void store_two(TwoVectors x, T* to) {
  store_vectors(x.a, x.b, to);
}
#if HWY_TARGET != HWY_SCALAR
// a: the even elements, b: the odd ones; each 32-bit word holds one of each.
HWY_INLINE TwoVectors load_two(const bfloat16* from) {
  const auto both =
      hn::BitCast(layout::Bits(), hn::LoadU(layout::TwiceWords(), reinterpret_cast<const uint16_t*>(from)));
  return {layout::as_float(hn::ShiftLeft<16>(both)), layout::as_float(hn::And(both, layout::every(0xffff0000)))};
}
// A NaN comes from a bfloat16 input, from the processor, or from every_lane(): its lower half is 0, so rounding keeps
// it a NaN.
HWY_INLINE void store_two(TwoVectors x, bfloat16* to) {
  const auto even = hn::ShiftRight<16>(layout::rounded_to_bfloat16_unless_nan(x.a));
  const auto odd = hn::And(layout::rounded_to_bfloat16_unless_nan(x.b), layout::every(0xffff0000));
  hn::StoreU(hn::BitCast(layout::TwiceWords(), hn::Or(even, odd)), layout::TwiceWords(),
             reinterpret_cast<uint16_t*>(to));
}
#endif

// Loads the first `count` elements, then zeros; store_part() is the reverse.
template <class T>
HWY_INLINE Vector load_part(const T* from, int64_t count) {
  HWY_ALIGN T room[hn::MaxLanes(Floats())] = {};
  std::copy_n(from, count, room);
  return load_vector(room);
}
template <class T>
HWY_INLINE void store_part(Vector x, T* to, int64_t count) {
  HWY_ALIGN T room[hn::MaxLanes(Floats())];
  store_vector(x, room);
  std::copy_n(room, count, to);
}

// Calls body with an element of a type that is computed in float32.
template <class Body>
HWY_INLINE auto visit_floats(DType dtype, Body body) {
  if (dtype == kFloat32) return body(0.0F);
  if (dtype == kFloat16) return body(float16());
  return body(bfloat16());
}

}  // namespace brigade::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
