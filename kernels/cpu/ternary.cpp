// Addcmul, addcdiv and lerp on the CPU, in one pass in float32 or float64.
#include <brigade/kernels/common/elementwise.h>
#include <brigade/kernels/cpu/detail/stretches.h>
#include <brigade/kernels/cpu/vector/elementwise.h>

namespace brigade::kernels {
namespace {

Tensor ternary_cpu(const Tensor& a, const Tensor& b, const Tensor& c, TernaryOp op, double number) {
  const TernaryOperands o = prepare_ternary(a, b, c, op);
  if (o.out.dtype() == kFloat64) {
    const Ternary<double> f{op, number};
    cpu::map_doubles({&o.a, &o.b, &o.c}, o.out, [f](const double* const* in, double* out, int64_t n) {
      for (int64_t i = 0; i < n; ++i)
        out[i] = f(in[0][i], in[1][i], in[2][i]);
    });
  } else {
    const auto factor = static_cast<float>(number);
    cpu::map_floats({&o.a, &o.b, &o.c}, o.out,
                    [=](const cpu::FloatArrays& arrays) { cpu::ternary_floats(op, factor, arrays); });
  }
  return o.out;
}

Tensor lerp_cpu(const Tensor& a, const Tensor& b, double weight) {
  const Operands o = prepare_lerp(a, b);
  if (o.out.dtype() == kFloat64) {
    cpu::map_doubles({&o.x, &o.y}, o.out, cpu::loop2<double>(LerpWith<double>{weight}));
  } else {
    const auto share = static_cast<float>(weight);
    cpu::map_floats({&o.x, &o.y}, o.out, [=](const cpu::FloatArrays& arrays) { cpu::lerp_floats(share, arrays); });
  }
  return o.out;
}

}  // namespace

constinit Kernel<Tensor(const Tensor&, const Tensor&, const Tensor&, TernaryOp, double)> ternary("ternary",
                                                                                                 &ternary_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, double)> lerp("lerp", &lerp_cpu);

}  // namespace brigade::kernels
