#include <brigade/kernels/elementwise.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/cpu/detail/map.h>
#include <brigade/kernels/cpu/detail/math.h>
#include <brigade/kernels/cpu/detail/strided_map.h>
#include <brigade/kernels/detail/elementwise_checks.h>
#include <brigade/kernels/detail/functors.h>
#include <brigade/kernels/detail/scalar.h>

namespace brigade::kernels {

namespace {

using cpu::map1;
using cpu::map2;

Tensor binary_cpu(const Tensor& a, const Tensor& b, BinaryOp op) {
  // Nothing to check, cast or broadcast.
  if (a.dtype() == kFloat32 && b.dtype() == kFloat32 && a.sizes() == b.sizes() && a.device() == Device() &&
      b.device() == Device()) {
    const Tensor out = empty(a.sizes(), kFloat32);
    with_binary(op, [&](auto f) { map2<float, float>(a, b, out, f); });
    return out;
  }
  const Operands o = prepare_binary(a, b, op);
  // A number beside half types keeps the precision that it has.
  if (is_half(o.out.dtype()) && a.dim() != b.dim() && a.dtype() != b.dtype()) {
    if (b.dim() == 0 && is_half(a.dtype())) return binary_scalar(a, detail::element_as_double(b, 0), op, false);
    if (a.dim() == 0 && is_half(b.dtype())) return binary_scalar(b, detail::element_as_double(a, 0), op, true);
  }
  visit_dtype(o.out.dtype(), [&]<class T>() { with_binary(op, [&](auto f) { map2<T, T>(o.x, o.y, o.out, f); }); });
  return o.out;
}

Tensor binary_scalar_cpu(const Tensor& a, double scalar, BinaryOp op, bool reversed) {
  const Operands o = prepare_binary_scalar(a, scalar, op);
  visit_dtype(o.out.dtype(), [&]<class T>() {
    using C = compute_type<T>;
    const C s = scalar_as<C>(scalar);
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
  if (x.dtype() == kBool && takes_integers(op)) return unary_of_bool(x, op);
  // By functions that the compiler vectorises in float32.
  if (op == UnaryOp::Exp) return cpu::map(x, "exp", 8, [](auto v) { return cpu::exp(v); });
  if (op == UnaryOp::Log) return cpu::map(x, "log", 8, [](auto v) { return cpu::log(v); });
  Tensor out = empty(x.sizes(), x.options());
  if (takes_integers(op) && x.dtype() == kInt64) {
    with_unary_any(op, [&](auto f) { map1<int64_t, int64_t>(x, out, f); });
  } else if (takes_integers(op) && x.dtype() == kInt32) {
    with_unary_any(op, [&](auto f) { map1<int32_t, int32_t>(x, out, f); });
  } else if (takes_integers(op) && x.dtype() == kUInt8) {
    with_unary_any(op, [&](auto f) { map1<uint8_t, uint8_t>(x, out, f); });
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
