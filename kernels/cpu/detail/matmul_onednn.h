// Products of bfloat16 matrices through oneDNN primitives, cached by shape.
#pragma once

#include <brigade/kernels/common/matmul.h>

namespace brigade::kernels::cpu {

// Whether products of this dtype and size are better there than through float32: bfloat16 on a processor with
// instructions for it (they take subnormal numbers as 0).
bool onednn_multiplies(DType dtype, int64_t m, int64_t n, int64_t k);
// plan.out (+)= a b, rounded once. Returns false, with nothing done, where oneDNN has no primitive for it.
bool onednn_matmul(const MatrixOperand& a, const MatrixOperand& b, const MatmulPlan& plan);

}  // namespace brigade::kernels::cpu
