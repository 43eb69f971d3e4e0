// Loops over dense tensors, element by element, in float for half types; other layouts are made dense first.
#pragma once

#include <brigade/core/factory.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/detail/elementwise_checks.h>

namespace brigade::kernels::cpu {

// y = f(x). `cost`: in elements of cheap work.
template <class F>
Tensor map(const Tensor& x, const char* what, int64_t cost, F f) {
  const Tensor source = contiguous(x);
  Tensor result = empty(x.sizes(), x.options());
  visit_floating(x.dtype(), what, [&]<class T>() {
    using C = compute_type<T>;
    const T* in = static_cast<const T*>(source.raw_data());
    T* out = static_cast<T*>(result.raw_data());
    parallel_for(
        x.numel(),
        [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            out[i] = static_cast<T>(f(static_cast<C>(in[i])));
        },
        cost);
  });
  return result;
}

// f(grad, x)
template <class F>
Tensor map_backward(const Tensor& grad, const Tensor& x, const char* what, int64_t cost, F f) {
  check_gradient_like(grad, x, what);
  const Tensor g = contiguous(grad);
  const Tensor source = contiguous(x);
  Tensor result = empty(x.sizes(), x.options());
  visit_floating(x.dtype(), what, [&]<class T>() {
    using C = compute_type<T>;
    const T* in = static_cast<const T*>(source.raw_data());
    const T* slope = static_cast<const T*>(g.raw_data());
    T* out = static_cast<T*>(result.raw_data());
    parallel_for(
        x.numel(),
        [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            out[i] = static_cast<T>(f(static_cast<C>(slope[i]), static_cast<C>(in[i])));
        },
        cost);
  });
  return result;
}

// y = f(x) for a function that has a short way for most numbers of float32 and a long one, f.exact, for the rest
// (wide_math.h): the short way over a stretch, then the rest of it again where there is any.
template <class F>
Tensor map_mostly(const Tensor& x, const char* what, int64_t cost, F f) {
  const Tensor source = contiguous(x);
  Tensor result = empty(x.sizes(), x.options());
  visit_floating(x.dtype(), what, [&]<class T>() {
    using C = compute_type<T>;
    const T* in = static_cast<const T*>(source.raw_data());
    T* out = static_cast<T*>(result.raw_data());
    parallel_for(
        x.numel(),
        [&](int64_t begin, int64_t end) {
          if constexpr (std::is_same_v<C, double>) {
            for (int64_t i = begin; i < end; ++i)
              out[i] = F::exact(in[i]);
          } else {
            constexpr int64_t kStretch = 1024;
            for (int64_t first = begin; first < end; first += kStretch) {
              const int64_t last = std::min(end, first + kStretch);
              int32_t all_short = 1;
              for (int64_t i = first; i < last; ++i) {
                const C v = static_cast<C>(in[i]);
                all_short &= static_cast<int32_t>(F::is_short(v));
                out[i] = static_cast<T>(f(v));
              }
              if (all_short) continue;
              for (int64_t i = first; i < last; ++i) {
                const C v = static_cast<C>(in[i]);
                if (!F::is_short(v)) out[i] = static_cast<T>(F::exact(v));
              }
            }
          }
        },
        cost);
  });
  return result;
}

}  // namespace brigade::kernels::cpu
