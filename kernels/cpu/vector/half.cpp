#include <brigade/kernels/cpu/vector/targets.h>

#define HWY_TARGET_INCLUDE <brigade/kernels/cpu/vector/half.cpp>
#include <hwy/foreach_target.h>
// After foreach_target.h:
#include <brigade/kernels/cpu/vector/half.h>

#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace brigade::kernels::cpu::HWY_NAMESPACE {

namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Bits = hn::RebindToUnsigned<Floats>;
using Halves = hn::Rebind<uint16_t, Floats>;
using BitVector = hn::Vec<Bits>;
using FloatVector = hn::Vec<Floats>;

HWY_INLINE BitVector every(uint32_t bits) { return hn::Set(Bits(), bits); }
HWY_INLINE FloatVector as_float(BitVector bits) { return hn::BitCast(Floats(), bits); }
HWY_INLINE BitVector as_bits(FloatVector x) { return hn::BitCast(Bits(), x); }
HWY_INLINE BitVector choose(hn::Mask<Bits> mask, BitVector yes, BitVector no) { return hn::IfThenElse(mask, yes, no); }

// The instructions for float16 that AVX2 and above have are in Highway; elsewhere the layouts of IEEE 754 are moved.
constexpr bool kHasHalfInstructions = HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3;

struct WidenHalf {
  HWY_INLINE FloatVector operator()(const float16* from) const {
    if constexpr (kHasHalfInstructions) {
      const hn::Rebind<hwy::float16_t, Floats> halves;
      return hn::PromoteTo(Floats(), hn::LoadU(halves, reinterpret_cast<const hwy::float16_t*>(from)));
    } else {
      const auto bits = hn::PromoteTo(Bits(), hn::LoadU(Halves(), reinterpret_cast<const uint16_t*>(from)));
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
  }
};
struct NarrowHalf {
  HWY_INLINE void operator()(FloatVector x, float16* to) const {
    if constexpr (kHasHalfInstructions) {
      const hn::Rebind<hwy::float16_t, Floats> halves;
      hn::StoreU(hn::DemoteTo(halves, x), halves, reinterpret_cast<hwy::float16_t*>(to));
    } else {
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
      half = hn::Or(sign, choose(hn::Gt(magnitude, every(0x7f800000)), nan, half));
      hn::StoreU(hn::TruncateTo(Halves(), half), Halves(), reinterpret_cast<uint16_t*>(to));
    }
  }
};

struct WidenBFloat {
  HWY_INLINE FloatVector operator()(const bfloat16* from) const {
    const auto bits = hn::PromoteTo(Bits(), hn::LoadU(Halves(), reinterpret_cast<const uint16_t*>(from)));
    return as_float(hn::ShiftLeft<16>(bits));
  }
};
// A bfloat16 number is the upper half of a float32 number, to which what rounds it is added first.
HWY_INLINE BitVector rounded_to_upper_half(FloatVector x) {
  const auto bits = as_bits(x);
  const auto is_odd = hn::And(hn::ShiftRight<16>(bits), every(1));
  return choose(hn::RebindMask(Bits(), hn::IsNaN(x)), hn::Or(bits, every(0x400000)), bits + every(0x7fff) + is_odd);
}
struct NarrowBFloat {
  HWY_INLINE void operator()(FloatVector x, bfloat16* to) const {
    const auto upper = hn::ShiftRight<16>(rounded_to_upper_half(x));
    hn::StoreU(hn::TruncateTo(Halves(), upper), Halves(), reinterpret_cast<uint16_t*>(to));
  }
#if HWY_TARGET != HWY_SCALAR
  // Two vectors into one.
  HWY_INLINE void operator()(FloatVector low, FloatVector high, bfloat16* to) const {
    const hn::Repartition<uint16_t, Floats> words;
    const auto upper = hn::ConcatOdd(words, hn::BitCast(words, rounded_to_upper_half(high)),
                                     hn::BitCast(words, rounded_to_upper_half(low)));
    hn::StoreU(upper, words, reinterpret_cast<uint16_t*>(to));
  }
#endif
};

// Elements that fill no vector are converted in a copy that does.
template <class T, class Widen>
HWY_INLINE void widen_all(const T* from, float* to, int64_t n, Widen convert) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(convert(from + i), d, to + i);
  if (i == n) return;
  T in[hn::MaxLanes(Floats())] = {};
  float out[hn::MaxLanes(Floats())];
  std::copy_n(from + i, n - i, in);
  hn::StoreU(convert(in), d, out);
  std::copy_n(out, n - i, to + i);
}
template <class T, class Narrow>
HWY_INLINE void narrow_all(const float* from, T* to, int64_t n, Narrow convert) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  if constexpr (std::is_invocable_v<Narrow, FloatVector, FloatVector, T*>) {
    for (; i + 2 * lanes <= n; i += 2 * lanes)
      convert(hn::LoadU(d, from + i), hn::LoadU(d, from + i + lanes), to + i);
  }
  for (; i + lanes <= n; i += lanes)
    convert(hn::LoadU(d, from + i), to + i);
  if (i == n) return;
  float in[hn::MaxLanes(Floats())] = {};
  T out[hn::MaxLanes(Floats())];
  std::copy_n(from + i, n - i, in);
  convert(hn::LoadU(d, in), out);
  std::copy_n(out, n - i, to + i);
}

}  // namespace

void widen_half(const float16* from, float* to, int64_t n) { widen_all(from, to, n, WidenHalf()); }
void widen_bfloat(const bfloat16* from, float* to, int64_t n) { widen_all(from, to, n, WidenBFloat()); }
void narrow_half(const float* from, float16* to, int64_t n) { narrow_all(from, to, n, NarrowHalf()); }
void narrow_bfloat(const float* from, bfloat16* to, int64_t n) { narrow_all(from, to, n, NarrowBFloat()); }

}  // namespace brigade::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brigade::kernels::cpu {

HWY_EXPORT(widen_half);
HWY_EXPORT(widen_bfloat);
HWY_EXPORT(narrow_half);
HWY_EXPORT(narrow_bfloat);

void widen(const float16* from, float* to, int64_t n) { HWY_DYNAMIC_DISPATCH(widen_half)(from, to, n); }
void widen(const bfloat16* from, float* to, int64_t n) { HWY_DYNAMIC_DISPATCH(widen_bfloat)(from, to, n); }
void narrow(const float* from, float16* to, int64_t n) { HWY_DYNAMIC_DISPATCH(narrow_half)(from, to, n); }
void narrow(const float* from, bfloat16* to, int64_t n) { HWY_DYNAMIC_DISPATCH(narrow_bfloat)(from, to, n); }

}  // namespace brigade::kernels::cpu
#endif
