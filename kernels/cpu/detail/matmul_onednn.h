// Products of bfloat16 matrices through oneDNN primitives, cached by shape.
#pragma once

#include <brigade/kernels/common/matmul.h>

namespace brigade::kernels::cpu {

// plan.out (+)= a b, rounded once. Returns false, with nothing done, where float32 is the better
// way or the only one: for other dtypes than bfloat16, for small products, and on a processor
// without instructions for bfloat16 (those take subnormal numbers as 0).
bool onednn_matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options, const MatmulPlan& plan);

}  // namespace brigade::kernels::cpu
