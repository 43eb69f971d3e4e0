#include <brigade/kernels/elementwise.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/cpu/detail/strided.h>
#include <brigade/kernels/detail/elementwise_checks.h>
#include <brigade/kernels/detail/functors.h>

namespace brigade::kernels {

namespace {

using cpu::parallel_for;
using cpu::StridedLoop;

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

Tensor binary_cpu(const Tensor& a, const Tensor& b, BinaryOp op) {
  // Nothing to check, cast or broadcast.
  if (a.dtype() == kFloat32 && b.dtype() == kFloat32 && a.sizes() == b.sizes() && a.device() == b.device()) {
    const Tensor out = empty(a.sizes(), a.options());
    with_binary(op, [&](auto f) { map2<float, float>(a, b, out, f); });
    return out;
  }
  const Operands o = prepare_binary(a, b, op);
  visit_dtype(o.out.dtype(), [&]<class T>() { with_binary(op, [&](auto f) { map2<T, T>(o.x, o.y, o.out, f); }); });
  return o.out;
}

Tensor binary_scalar_cpu(const Tensor& a, double scalar, BinaryOp op, bool reversed) {
  const Operands o = prepare_binary_scalar(a, scalar, op);
  visit_dtype(o.out.dtype(), [&]<class T>() {
    using C = compute_type<T>;
    const C s = static_cast<C>(scalar);
    with_binary(op, [&](auto f) {
      if (reversed) {
        map1<T, T>(o.x, o.out, [=](C v) { return f(s, v); });
      } else {
        map1<T, T>(o.x, o.out, [=](C v) { return f(v, s); });
      }
    });
  });
  return o.out;
}

Tensor compare_cpu(const Tensor& a, const Tensor& b, CompareOp op) {
  const Operands o = prepare_compare(a, b);
  visit_dtype(o.x.dtype(), [&]<class T>() { with_compare(op, [&](auto f) { map2<T, bool>(o.x, o.y, o.out, f); }); });
  return o.out;
}

Tensor compare_scalar_cpu(const Tensor& a, double scalar, CompareOp op) {
  Tensor out = empty(a.sizes(), {kBool, a.device()});
  visit_dtype(a.dtype(), [&]<class T>() {
    with_compare(op, [&](auto f) { map1<T, bool>(a, out, CompareWithNumber<decltype(f)>{f, scalar}); });
  });
  return out;
}

Tensor unary_cpu(const Tensor& x, UnaryOp op) {
  Tensor out = empty(x.sizes(), x.options());
  if (takes_integers(op) && x.dtype() == kInt64) {
    with_unary_any(op, [&](auto f) { map1<int64_t, int64_t>(x, out, f); });
  } else if (takes_integers(op) && x.dtype() == kInt32) {
    with_unary_any(op, [&](auto f) { map1<int32_t, int32_t>(x, out, f); });
  } else {
    visit_floating(x.dtype(), "unary operation",
                   [&]<class T>() { with_unary(op, [&](auto f) { map1<T, T>(x, out, f); }); });
  }
  return out;
}

}  // namespace

constinit Kernel<Tensor(const Tensor&, const Tensor&, BinaryOp)> binary("binary", &binary_cpu);
constinit Kernel<Tensor(const Tensor&, double, BinaryOp, bool)> binary_scalar("binary_scalar", &binary_scalar_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, CompareOp)> compare("compare", &compare_cpu);
constinit Kernel<Tensor(const Tensor&, double, CompareOp)> compare_scalar("compare_scalar", &compare_scalar_cpu);
constinit Kernel<Tensor(const Tensor&, UnaryOp)> unary("unary", &unary_cpu);

}  // namespace brigade::kernels
