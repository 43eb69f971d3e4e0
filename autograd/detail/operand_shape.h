// The gradient of an operand that was broadcast (and perhaps promoted) on its way in.
#pragma once

#include <brigade/autograd/ops/reduce.h>

namespace brigade::autograd::detail {

struct OperandShape {
  Shape sizes;
  DType dtype = DType::Float32;
  bool is_of_result = false;  // then the others are not kept

  void take(const Tensor& operand, const Tensor& result) {
    is_of_result = operand.sizes() == result.sizes() && operand.dtype() == result.dtype();
    if (is_of_result) return;
    sizes = operand.sizes();
    dtype = operand.dtype();
  }
  // A gradient of the result's shape, summed and cast to the operand's.
  Tensor reduce(const Tensor& grad) const {
    if (is_of_result) return grad;
    const Tensor summed = grad.sizes() == sizes ? grad : sum_to(grad, sizes, {});
    return summed.dtype() == dtype ? summed : summed.to(dtype, {});
  }
};

}  // namespace brigade::autograd::detail
