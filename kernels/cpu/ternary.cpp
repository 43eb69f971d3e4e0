#include <brigade/kernels/cpu/detail/strided_map.h>
#include <brigade/kernels/detail/ternary_functors.h>

namespace brigade::kernels {

namespace {

// One operation, known when the loop is compiled.
template <TernaryOp op, class C>
struct Fixed {
  C number;
  C operator()(C a, C b, C c) const { return Ternary<C>{op, number}(a, b, c); }
};

template <class T, class F>
void map3(const TernaryOperands& o, F f) {
  using C = compute_type<T>;
  const T* const a = static_cast<const T*>(o.a.raw_data());
  const T* const b = static_cast<const T*>(o.b.raw_data());
  const T* const c = static_cast<const T*>(o.c.raw_data());
  T* const out = static_cast<T*>(o.out.raw_data());
  cpu::StridedLoop<4>(o.out.sizes(), {&o.a, &o.b, &o.c, &o.out})
      .for_each_row([&](const auto& at, const auto& steps, int64_t length) {
        const T* p = a + at[0];
        const T* q = b + at[1];
        const T* r = c + at[2];
        T* z = out + at[3];
        if (steps[0] == 1 && steps[1] == 1 && steps[2] == 1) {
          for (int64_t i = 0; i < length; ++i)
            z[i] = static_cast<T>(f(static_cast<C>(p[i]), static_cast<C>(q[i]), static_cast<C>(r[i])));
        } else {
          for (int64_t i = 0; i < length; ++i) {
            z[i] = static_cast<T>(
                f(static_cast<C>(p[i * steps[0]]), static_cast<C>(q[i * steps[1]]), static_cast<C>(r[i * steps[2]])));
          }
        }
      });
}

Tensor ternary_cpu(const Tensor& a, const Tensor& b, const Tensor& c, TernaryOp op, double number) {
  const TernaryOperands o = prepare_ternary(a, b, c, op);
  visit_floating(o.out.dtype(), "ternary", [&]<class T>() {
    using C = compute_type<T>;
    const C n = static_cast<C>(number);
    switch (op) {
      case TernaryOp::Addcmul: map3<T>(o, Fixed<TernaryOp::Addcmul, C>{n}); break;
      case TernaryOp::Addcdiv: map3<T>(o, Fixed<TernaryOp::Addcdiv, C>{n}); break;
      case TernaryOp::Lerp: map3<T>(o, Fixed<TernaryOp::Lerp, C>{n}); break;
    }
  });
  return o.out;
}

Tensor lerp_cpu(const Tensor& a, const Tensor& b, double weight) {
  const Operands o = prepare_lerp(a, b);
  visit_floating(o.out.dtype(), "lerp", [&]<class T>() {
    using C = compute_type<T>;
    cpu::map2<T, T>(o.x, o.y, o.out, LerpWith<C>{static_cast<C>(weight)});
  });
  return o.out;
}

}  // namespace

constinit Kernel<Tensor(const Tensor&, const Tensor&, const Tensor&, TernaryOp, double)> ternary("ternary",
                                                                                                 &ternary_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, double)> lerp("lerp", &lerp_cpu);

}  // namespace brigade::kernels
