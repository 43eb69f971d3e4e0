// Loops over vectors of float32, and of float32 numbers that are computed in float64. Compiled for each instruction
// set.
#if defined(BRIGADE_KERNELS_CPU_VECTOR_LOOPS) == defined(HWY_TARGET_TOGGLE)
#ifdef BRIGADE_KERNELS_CPU_VECTOR_LOOPS
#undef BRIGADE_KERNELS_CPU_VECTOR_LOOPS
#else
#define BRIGADE_KERNELS_CPU_VECTOR_LOOPS
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace brigade::kernels::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Vector = hn::Vec<Floats>;

// out[i] = f(in[0][i], in[1][i], ...) for n elements. What `out` shares with an input, it shares element for element.
// Elements that fill no vector are computed in a copy that does.
template <int inputs, class F>
HWY_INLINE void each(const float* const (&in)[inputs], float* out, int64_t n, F f) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN float room[inputs + 1][hn::MaxLanes(d)] = {};
  const float* from[inputs];
  for (int k = 0; k < inputs; ++k)
    from[k] = in[k];
  float* to = out;
  int64_t count = n / lanes * lanes;
  int64_t rest = n - count;
  while (true) {
    for (int64_t i = 0; i < count; i += lanes) {
      if constexpr (inputs == 1) hn::StoreU(f(hn::LoadU(d, from[0] + i)), d, to + i);
      if constexpr (inputs == 2) hn::StoreU(f(hn::LoadU(d, from[0] + i), hn::LoadU(d, from[1] + i)), d, to + i);
      if constexpr (inputs == 3) {
        hn::StoreU(f(hn::LoadU(d, from[0] + i), hn::LoadU(d, from[1] + i), hn::LoadU(d, from[2] + i)), d, to + i);
      }
    }
    if (to == room[inputs]) break;
    if (rest == 0) return;
    for (int k = 0; k < inputs; ++k) {
      std::copy_n(in[k] + count, rest, room[k]);
      from[k] = room[k];
    }
    to = room[inputs];
    count = lanes;
  }
  std::copy_n(room[inputs], rest, out + n - rest);
}

template <class F>
HWY_INLINE void each1(const float* x, float* out, int64_t n, F f) {
  each<1>({x}, out, n, f);
}
template <class F>
HWY_INLINE void each2(const float* x, const float* y, float* out, int64_t n, F f) {
  each<2>({x, y}, out, n, f);
}

}  // namespace brigade::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
