// Pow, atan2, remainder and fmod on the CPU, in loops of float32, float64 or int64.
#include <brigade/kernels/elementwise.h>

#include <brigade/kernels/common/elementwise.h>
#include <brigade/kernels/cpu/detail/stretches.h>
#include <brigade/kernels/cpu/vector/elementwise.h>
#include <brigade/kernels/factory.h>

namespace brigade::kernels {
namespace {

void compute(const Tensor& a, const Tensor& b, const Tensor& out, BinaryFunction f) {
  if (cpu::is_computed_in_float(out.dtype())) {
    cpu::map_floats(
        {&a, &b}, out,
        [f](const float* const* in, float* to, int64_t n) { cpu::binary_function_floats(f, in[0], in[1], to, n); }, 16);
  } else if (out.dtype() == kFloat64) {
    cpu::map_doubles({&a, &b}, out, cpu::loop2<double>(AnyBinaryFunction{f}), 16);
  } else {
    cpu::map_integers({&a, &b}, out, cpu::loop2<int64_t>(AnyBinaryFunction{f}));
  }
}

Tensor binary_function_cpu(const Tensor& a, const Tensor& b, BinaryFunction f) {
  const Operands o = prepare_binary_function(a, b, f);
  compute(o.x, o.y, o.out, f);
  return o.out;
}

Tensor binary_function_scalar_cpu(const Tensor& a, Scalar number, BinaryFunction f, bool reversed) {
  const Operands o = prepare_binary_function_scalar(a, number, f);
  // The number becomes a tensor without dimensions, in the compute type.
  const DType dtype = o.out.dtype();
  const Tensor same = full({}, number,
                           cpu::is_computed_in_float(dtype) ? kFloat32
                           : is_floating_point(dtype)       ? kFloat64
                                                            : kInt64);
  compute(reversed ? same : o.x, reversed ? o.x : same, o.out, f);
  return o.out;
}

}  // namespace

constinit Kernel<Tensor(const Tensor&, const Tensor&, BinaryFunction)> binary_function("binary_function",
                                                                                       &binary_function_cpu);
constinit Kernel<Tensor(const Tensor&, Scalar, BinaryFunction, bool)> binary_function_scalar(
    "binary_function_scalar", &binary_function_scalar_cpu);

}  // namespace brigade::kernels
