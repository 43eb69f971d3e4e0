// out = f(a), f(a, b) over any strides, in the compute_type of the inputs; out is contiguous.
#pragma once

#include <brigade/kernels/cpu/detail/strided.h>

namespace brigade::kernels::cpu {

// The first element of a tensor that is known to be of T.
template <class T>
T* first(const Tensor& tensor) {
  return static_cast<T*>(tensor.storage()->data()) + tensor.storage_offset();
}

template <class T, class Out, class F>
[[gnu::noinline]] void map2_strided(const Tensor& a, const Tensor& b, const Tensor& out, F f) {
  using C = compute_type<T>;
  const T* x = first<T>(a);
  const T* y = first<T>(b);
  Out* z = first<Out>(out);
  StridedLoop<3>(out.sizes(), {&a, &b, &out}).for_each_row([&](const auto& offsets, const auto& steps, int64_t length) {
    const T* p = x + offsets[0];
    const T* q = y + offsets[1];
    Out* r = z + offsets[2];
    // The three shapes of inner loop that a compiler vectorises, then the general one.
    if (steps[0] == 1 && steps[1] == 1) {
      for (int64_t i = 0; i < length; ++i)
        r[i] = static_cast<Out>(f(static_cast<C>(p[i]), static_cast<C>(q[i])));
    } else if (steps[0] == 1 && steps[1] == 0) {
      const C right = static_cast<C>(*q);
      for (int64_t i = 0; i < length; ++i)
        r[i] = static_cast<Out>(f(static_cast<C>(p[i]), right));
    } else if (steps[0] == 0 && steps[1] == 1) {
      const C left = static_cast<C>(*p);
      for (int64_t i = 0; i < length; ++i)
        r[i] = static_cast<Out>(f(left, static_cast<C>(q[i])));
    } else {
      for (int64_t i = 0; i < length; ++i) {
        r[i] = static_cast<Out>(f(static_cast<C>(p[i * steps[0]]), static_cast<C>(q[i * steps[1]])));
      }
    }
  });
}

// out = f(a, b), out contiguous, a and b broadcast to its shape; all of element type T but out. What `out` shares with
// an input, it shares element for element.
template <class T, class Out, class F>
void map2(const Tensor& a, const Tensor& b, const Tensor& out, F f) {
  if (!a.is_contiguous() || !b.is_contiguous() || a.numel() != out.numel() || b.numel() != out.numel())
    return map2_strided<T, Out>(a, b, out, f);
  using C = compute_type<T>;
  const T* x = first<T>(a);
  const T* y = first<T>(b);
  Out* z = first<Out>(out);
  parallel_for(out.numel(), [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i)
      z[i] = static_cast<Out>(f(static_cast<C>(x[i]), static_cast<C>(y[i])));
  });
}

template <class T, class Out, class F>
[[gnu::noinline]] void map1_strided(const Tensor& a, const Tensor& out, F f) {
  using C = compute_type<T>;
  const T* x = first<T>(a);
  Out* z = first<Out>(out);
  StridedLoop<2>(out.sizes(), {&a, &out}).for_each_row([&](const auto& offsets, const auto& steps, int64_t length) {
    for (int64_t i = 0; i < length; ++i) {
      z[offsets[1] + i * steps[1]] = static_cast<Out>(f(static_cast<C>(x[offsets[0] + i * steps[0]])));
    }
  });
}

// out = f(a), out contiguous and of the shape of a. What they share, they share element for element.
template <class T, class Out, class F>
void map1(const Tensor& a, const Tensor& out, F f) {
  if (!a.is_contiguous()) return map1_strided<T, Out>(a, out, f);
  using C = compute_type<T>;
  const T* x = first<T>(a);
  Out* z = first<Out>(out);
  parallel_for(out.numel(), [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i)
      z[i] = static_cast<Out>(f(static_cast<C>(x[i])));
  });
}

}  // namespace brigade::kernels::cpu
