// Elementary functions on the CPU: vectorized loops for float32, scalar loops for float64.
#include <brigade/kernels/elementwise.h>

#include <brigade/kernels/common/elementwise_functors.h>
#include <brigade/kernels/cpu/detail/stretches.h>
#include <brigade/kernels/cpu/vector/elementwise.h>

#include <iterator>

namespace brigade::kernels {
namespace {

const char* name(Function f) {
  constexpr const char* kNames[] = {"rsqrt", "sin",  "cos",   "tan",   "asin",  "acos",  "atan",
                                    "sinh",  "cosh", "log1p", "expm1", "log2",  "log10", "exp2",
                                    "erf",   "erfc", "floor", "ceil",  "round", "trunc"};
  static_assert(std::size(kNames) == kFunctions);
  return kNames[static_cast<int>(f)];
}

Tensor function_cpu(const Tensor& x, Function f) {
  const bool is_cheap = f == Function::Rsqrt || f >= Function::Floor;
  return cpu::map(
      name(f), x, is_cheap ? 1 : 8,
      [f](const float* const* in, float* out, int64_t n) { cpu::function_floats(f, in[0], out, n); },
      [f](const double* const* in, double* out, int64_t n) {
        with_function(f, [&](auto functor) { cpu::loop1<double>(functor)(in, out, n); });
      });
}

}  // namespace

constinit Kernel<Tensor(const Tensor&, Function)> function("function", &function_cpu);

}  // namespace brigade::kernels
