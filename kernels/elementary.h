// Elementary functions, element by element. Results are contiguous; half types are computed in
// float and rounded once.
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

enum class Function : uint8_t {
  Rsqrt,
  Sin,
  Cos,
  Tan,
  Asin,
  Acos,
  Atan,
  Sinh,
  Cosh,
  Log1p,
  Expm1,
  Log2,
  Log10,
  Exp2,
  Erf,
  Erfc,
  // Rounding: down, up, to nearest (ties to even), towards 0.
  Floor,
  Ceil,
  Round,
  Trunc,
};
inline constexpr int kFunctions = 20;

// Floating dtypes. In float32 the CPU error is at most 3 ULP.
extern Kernel<Tensor(const Tensor& x, Function f)> function;

}  // namespace brigade::kernels
