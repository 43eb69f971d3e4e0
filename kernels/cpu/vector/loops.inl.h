// Vector loops that compute in float32 on float32 or half storage. Compiled for each instruction set.
#if defined(BRIGADE_KERNELS_CPU_VECTOR_LOOPS) == defined(HWY_TARGET_TOGGLE)
#ifdef BRIGADE_KERNELS_CPU_VECTOR_LOOPS
#undef BRIGADE_KERNELS_CPU_VECTOR_LOOPS
#else
#define BRIGADE_KERNELS_CPU_VECTOR_LOOPS
#endif

#include <brigade/kernels/cpu/vector/elements.inl.h>
#include <brigade/kernels/cpu/vector/elementwise.h>

#include <algorithm>
#include <cstdint>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace brigade::kernels::cpu::HWY_NAMESPACE {

// f of the inputs' vectors at element i; two_vectors_at takes two vectors of each input.
template <int inputs, class T, class F>
HWY_INLINE Vector vector_at(const T* const (&in)[inputs], int64_t i, F f) {
  if constexpr (inputs == 1) return f(load_vector(in[0] + i));
  if constexpr (inputs == 2) return f(load_vector(in[0] + i), load_vector(in[1] + i));
  if constexpr (inputs == 3) return f(load_vector(in[0] + i), load_vector(in[1] + i), load_vector(in[2] + i));
}
template <int inputs, class T, class F>
HWY_INLINE TwoVectors two_vectors_at(const T* const (&in)[inputs], int64_t i, F f) {
  TwoVectors x[inputs];
  for (int k = 0; k < inputs; ++k)
    x[k] = load_two(in[k] + i);
  if constexpr (inputs == 1) return {f(x[0].a), f(x[0].b)};
  if constexpr (inputs == 2) return {f(x[0].a, x[1].a), f(x[0].b, x[1].b)};
  if constexpr (inputs == 3) return {f(x[0].a, x[1].a, x[2].a), f(x[0].b, x[1].b, x[2].b)};
}

// out[i] = f(in[0][i], in[1][i], ...) for n elements. `out` may alias an input, element for element. A last partial
// vector is computed in a padded copy.
template <int inputs, class T, class F>
HWY_INLINE void each(const T* const (&in)[inputs], T* out, int64_t n, F f) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN T room[inputs + 1][hn::MaxLanes(d)] = {};
  const T* from[inputs];
  for (int k = 0; k < inputs; ++k)
    from[k] = in[k];
  T* to = out;
  int64_t count = n / lanes * lanes;
  int64_t rest = n - count;
  while (true) {
    int64_t i = 0;
    // Half types: two vectors at a time.
    if constexpr (sizeof(T) < sizeof(float)) {
      for (; i + lanes < count; i += 2 * lanes)
        store_two(two_vectors_at<inputs>(from, i, f), to + i);
    }
    for (; i < count; i += lanes)
      store_vector(vector_at<inputs>(from, i, f), to + i);
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
template <class T, class F>
HWY_INLINE void each1(const T* x, T* out, int64_t n, F f) {
  each<1>({x}, out, n, f);
}

// The same for arrays of dtype T.
template <class T, size_t... k, class F>
HWY_INLINE void each_as(std::index_sequence<k...>, const FloatArrays& arrays, F f) {
  const T* const in[] = {static_cast<const T*>(arrays.in[k])...};
  each(in, static_cast<T*>(arrays.out), arrays.n, f);
}
// `of_halves`: the same function in half precision.
template <int inputs, class F, class Halves>
HWY_INLINE void each_of(const FloatArrays& arrays, F f, Halves of_halves) {
  const std::make_index_sequence<inputs> every_input;
  if (arrays.dtype == kFloat32) return each_as<float>(every_input, arrays, f);
  if (arrays.dtype == kFloat16) return each_as<float16>(every_input, arrays, of_halves);
  each_as<bfloat16>(every_input, arrays, of_halves);
}
template <int inputs, class F>
HWY_INLINE void each_of(const FloatArrays& arrays, F f) {
  each_of<inputs>(arrays, f, f);
}

}  // namespace brigade::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
