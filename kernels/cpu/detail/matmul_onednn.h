// Products of bfloat16 matrices through oneDNN primitives, cached by shape.
#pragma once

#include <brigade/kernels/common/matmul.h>

namespace brigade::kernels::cpu {

// plan.out (+)= a b, rounded once. Returns false without doing anything where float32 is better or required: for dtypes
// other than bfloat16, for small products, and on processors without bfloat16 instructions (which flush subnormals to
// 0).
bool onednn_matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options, const MatmulPlan& plan);

}  // namespace brigade::kernels::cpu
