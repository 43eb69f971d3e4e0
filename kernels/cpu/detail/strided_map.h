// out = f(a), f(a, b) over any strides, in the compute_type of the inputs; out is contiguous.
#pragma once

#include <brigade/kernels/cpu/detail/strided.h>

namespace brigade::kernels::cpu {

// out = f(a, b), out contiguous, a and b broadcast to its shape; all of element type T but out.
template <class T, class Out, class F>
void map2(const Tensor& a, const Tensor& b, const Tensor& out, F f) {
  using C = compute_type<T>;
  const T* x = static_cast<const T*>(a.raw_data());
  const T* y = static_cast<const T*>(b.raw_data());
  Out* z = static_cast<Out*>(out.raw_data());
  if (a.is_contiguous() && b.is_contiguous() && a.numel() == out.numel() && b.numel() == out.numel()) {
    parallel_for(out.numel(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        z[i] = static_cast<Out>(f(static_cast<C>(x[i]), static_cast<C>(y[i])));
    });
    return;
  }
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

// out = f(a), out contiguous and of the shape of a.
template <class T, class Out, class F>
void map1(const Tensor& a, const Tensor& out, F f) {
  using C = compute_type<T>;
  const T* x = static_cast<const T*>(a.raw_data());
  Out* z = static_cast<Out*>(out.raw_data());
  if (a.is_contiguous()) {
    parallel_for(out.numel(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        z[i] = static_cast<Out>(f(static_cast<C>(x[i])));
    });
    return;
  }
  StridedLoop<2>(out.sizes(), {&a, &out}).for_each_row([&](const auto& offsets, const auto& steps, int64_t length) {
    for (int64_t i = 0; i < length; ++i) {
      z[offsets[1] + i * steps[1]] = static_cast<Out>(f(static_cast<C>(x[offsets[0] + i * steps[0]])));
    }
  });
}

}  // namespace brigade::kernels::cpu
