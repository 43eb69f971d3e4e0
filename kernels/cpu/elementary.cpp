#include <brigade/kernels/elementary.h>

#include <brigade/kernels/cpu/detail/map.h>
#include <brigade/kernels/cpu/detail/wide_math.h>

namespace brigade::kernels {

namespace {

Tensor function_cpu(const Tensor& x, Function f) {
  constexpr int64_t kCost = 8;
  switch (f) {
    case Function::Rsqrt: return cpu::map(x, "rsqrt", 1, []<class C>(C v) { return C(1) / std::sqrt(v); });
    case Function::Sin: return cpu::map_mostly(x, "sin", kCost, cpu::Sin{});
    case Function::Cos: return cpu::map_mostly(x, "cos", kCost, cpu::Cos{});
    case Function::Tan: return cpu::map_mostly(x, "tan", kCost, cpu::Tan{});
    case Function::Asin: return cpu::map(x, "asin", kCost, [](auto v) { return cpu::asin(v); });
    case Function::Acos: return cpu::map(x, "acos", kCost, [](auto v) { return cpu::acos(v); });
    case Function::Atan: return cpu::map(x, "atan", kCost, [](auto v) { return cpu::atan(v); });
    case Function::Sinh: return cpu::map(x, "sinh", kCost, [](auto v) { return cpu::sinh(v); });
    case Function::Cosh: return cpu::map(x, "cosh", kCost, [](auto v) { return cpu::cosh(v); });
    case Function::Log1p: return cpu::map(x, "log1p", kCost, [](auto v) { return cpu::log1p(v); });
    case Function::Expm1: return cpu::map(x, "expm1", kCost, [](auto v) { return cpu::expm1(v); });
    case Function::Log2: return cpu::map(x, "log2", kCost, [](auto v) { return cpu::log2(v); });
    case Function::Log10: return cpu::map(x, "log10", kCost, [](auto v) { return cpu::log10(v); });
    case Function::Exp2: return cpu::map(x, "exp2", kCost, [](auto v) { return cpu::exp2(v); });
    case Function::Erf: return cpu::map(x, "erf", kCost, [](auto v) { return cpu::erf(v); });
    case Function::Erfc: return cpu::map(x, "erfc", kCost, [](auto v) { return cpu::erfc(v); });
    case Function::Floor: return cpu::map(x, "floor", 1, [](auto v) { return std::floor(v); });
    case Function::Ceil: return cpu::map(x, "ceil", 1, [](auto v) { return std::ceil(v); });
    case Function::Round: return cpu::map(x, "round", 1, [](auto v) { return std::rint(v); });
    case Function::Trunc: break;
  }
  return cpu::map(x, "trunc", 1, [](auto v) { return std::trunc(v); });
}

}  // namespace

constinit Kernel<Tensor(const Tensor&, Function)> function("function", &function_cpu);

}  // namespace brigade::kernels
