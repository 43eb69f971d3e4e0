// Arithmetic, comparisons and unary functions on the CPU, with a fast path for a few elements.
#include <brigade/kernels/elementwise.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/common/elementwise.h>
#include <brigade/kernels/common/elementwise_functors.h>
#include <brigade/kernels/cpu/detail/stretches.h>
#include <brigade/kernels/cpu/vector/elementwise.h>
#include <brigade/kernels/factory.h>

namespace brigade::kernels {
namespace {

using cpu::is_computed_in_float;
using cpu::loop1;
using cpu::loop2;

void binary_into(const Tensor& a, const Tensor& b, const Tensor& out, BinaryOp op) {
  if (is_computed_in_float(out.dtype())) {
    cpu::map_floats({&a, &b}, out, [op](const cpu::FloatArrays& arrays) { cpu::binary_floats(op, arrays); });
  } else if (out.dtype() == kFloat64) {
    with_binary(op, [&](auto f) { cpu::map_doubles({&a, &b}, out, loop2<double>(f)); });
  } else {
    with_binary(op, [&](auto f) { cpu::map_integers({&a, &b}, out, loop2<int64_t>(f)); });
  }
}

// The four arithmetic operations on a few numbers, where dispatch through the table of instruction sets costs more than
// the arithmetic. The results are the same: each is rounded once. Returns false for other operations.
bool arithmetic_of_few(BinaryOp op, const float* x, const float* y, float* out, int64_t n) {
  const auto each = [&](auto f) {
    for (int64_t i = 0; i < n; ++i)
      out[i] = f(x[i], y[i]);
    return true;
  };
  switch (op) {
    case BinaryOp::Add: return each([](float a, float b) { return a + b; });
    case BinaryOp::Sub: return each([](float a, float b) { return a - b; });
    case BinaryOp::Mul: return each([](float a, float b) { return a * b; });
    case BinaryOp::Div: return each([](float a, float b) { return a / b; });
    default: return false;
  }
}

Tensor binary_cpu(const Tensor& a, const Tensor& b, BinaryOp op) {
  // Nothing to check, cast or broadcast.
  if (a.dtype() == kFloat32 && b.dtype() == kFloat32 && a.sizes() == b.sizes() && a.device() == Device() &&
      b.device() == Device()) {
    const Tensor out = empty(a.sizes(), kFloat32);
    const bool is_done =
        cpu::is_few(a) && b.is_contiguous() &&
        arithmetic_of_few(op, static_cast<const float*>(a.raw_data()), static_cast<const float*>(b.raw_data()),
                          static_cast<float*>(out.raw_data()), out.numel());
    if (!is_done) binary_into(a, b, out, op);
    return out;
  }
  const Operands o = prepare_binary(a, b, op);
  // A number combined with a half tensor keeps its full precision.
  if (is_half(o.out.dtype()) && a.dim() != b.dim() && a.dtype() != b.dtype()) {
    if (b.dim() == 0 && is_half(a.dtype())) return binary_scalar(a, detail::element_as_double(b, 0), op, false);
    if (a.dim() == 0 && is_half(b.dtype())) return binary_scalar(b, detail::element_as_double(a, 0), op, true);
  }
  binary_into(o.x, o.y, o.out, op);
  return o.out;
}

// f(x, number), or f(number, x). Integer division never gets here: it is computed in float32.
template <class C>
struct ByNumber {
  BinaryOp op;
  C number;
  bool reversed;
  void operator()(const C* const* in, C* out, int64_t n) const {
    with_binary(op, [&](auto f) { loop1<C>(WithNumber<decltype(f), C>{f, number, reversed})(in, out, n); });
  }
};

// A number as an element of an integer dtype.
int64_t integer_as(DType dtype, Scalar number) {
  return visit_dtype(dtype, [&]<class T>() { return static_cast<int64_t>(number.to<compute_type<T>>()); });
}

Tensor binary_scalar_cpu(const Tensor& a, Scalar scalar, BinaryOp op, bool reversed) {
  const Operands o = prepare_binary_scalar(a, scalar, op);
  if (o.out.dtype() == kBool) return binary(a, full({}, scalar, a.options()), op);
  if (is_computed_in_float(o.out.dtype())) {
    const auto number = scalar.to<float>();
    cpu::map_floats({&o.x}, o.out,
                    [=](const cpu::FloatArrays& arrays) { cpu::binary_number_floats(op, number, reversed, arrays); });
  } else if (o.out.dtype() == kFloat64) {
    cpu::map_doubles({&o.x}, o.out, ByNumber<double>{op, scalar.to<double>(), reversed});
  } else {
    cpu::map_integers({&o.x}, o.out, ByNumber<int64_t>{op, integer_as(o.out.dtype(), scalar), reversed});
  }
  return o.out;
}

Tensor compare_cpu(const Tensor& a, const Tensor& b, CompareOp op) {
  const Operands o = prepare_compare(a, b);
  with_compare(op, [&](auto f) {
    if (is_computed_in_float(o.x.dtype())) {
      cpu::compare_floats({&o.x, &o.y}, o.out, loop2<float>(f));
    } else if (o.x.dtype() == kFloat64) {
      cpu::compare_doubles({&o.x, &o.y}, o.out, loop2<double>(f));
    } else {
      cpu::compare_integers({&o.x, &o.y}, o.out, loop2<int64_t>(f));
    }
  });
  return o.out;
}

Tensor compare_scalar_cpu(const Tensor& a, Scalar scalar, CompareOp op) {
  Tensor out = empty(a.sizes(), {kBool, a.device()});
  with_compare(op, [&](auto f) {
    using F = decltype(f);
    if (is_floating_point(a.dtype()) || scalar.is_floating_point()) {
      cpu::compare_doubles({&a}, out, loop1<double>(CompareWithNumber<F, double>{f, scalar.to<double>()}));
    } else {
      cpu::compare_integers({&a}, out, loop1<int64_t>(CompareWithNumber<F, int64_t>{f, scalar.to<int64_t>()}));
    }
  });
  return out;
}

Tensor unary_cpu(const Tensor& x, UnaryOp op) {
  if (x.dtype() == kBool && takes_integers(op)) return unary_of_bool(x, op);
  if (takes_integers(op) && !is_floating_point(x.dtype())) {
    Tensor out = empty(x.sizes(), x.options());
    with_unary_any(op, [&](auto f) { cpu::map_integers({&x}, out, loop1<int64_t>(f)); });
    return out;
  }
  const int64_t cost = op == UnaryOp::Exp || op == UnaryOp::Log ? 8 : 1;
  return cpu::map(
      "unary operation", x, cost, [op](const cpu::FloatArrays& arrays) { cpu::unary_floats(op, arrays); },
      [op](const double* const* in, double* out, int64_t n) {
        with_unary(op, [&](auto f) { loop1<double>(f)(in, out, n); });
      });
}

}  // namespace

constinit Kernel<Tensor(const Tensor&, const Tensor&, BinaryOp)> binary("binary", &binary_cpu);
constinit Kernel<Tensor(const Tensor&, Scalar, BinaryOp, bool)> binary_scalar("binary_scalar", &binary_scalar_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, CompareOp)> compare("compare", &compare_cpu);
constinit Kernel<Tensor(const Tensor&, Scalar, CompareOp)> compare_scalar("compare_scalar", &compare_scalar_cpu);
constinit Kernel<Tensor(const Tensor&, UnaryOp)> unary("unary", &unary_cpu);

}  // namespace brigade::kernels
