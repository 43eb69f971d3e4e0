// Checks, promoted dtype and broadcast shape of pow, atan2, remainder and fmod.
#include <brigade/core/factory.h>
#include <brigade/kernels/common/binary_function.h>
#include <brigade/kernels/promotion.h>

#include <string>

namespace brigade::kernels {

namespace {

const char* name(BinaryFunction f) {
  constexpr const char* kNames[] = {"pow", "atan2", "remainder", "fmod"};
  return kNames[static_cast<int>(f)];
}

DType checked(DType dtype, BinaryFunction f) {
  if (dtype == kBool) {
    throw DTypeError("{}: not defined for bool tensors; convert with .to(kInt64)", name(f));
  }
  return f == BinaryFunction::Atan2 && !is_floating_point(dtype) ? kFloat32 : dtype;
}

}  // namespace

Operands prepare_binary_function(const Tensor& a, const Tensor& b, BinaryFunction f) {
  if (a.device() != b.device()) {
    throw DeviceError("{}: both tensors must be on one device, got {} and {}", name(f), a.device(), b.device());
  }
  const DType dtype = checked(result_type({a, b}), f);
  return {cast(a, dtype), cast(b, dtype),
          empty(broadcast_shapes(a.sizes(), b.sizes()), TensorOptions(dtype, a.device()))};
}

Operands prepare_binary_function_scalar(const Tensor& a, Scalar number, BinaryFunction f) {
  checked(a.dtype(), f);
  // Atan2 gives the dtype of a quotient, the others that of a product.
  return prepare_binary_scalar(a, number, f == BinaryFunction::Atan2 ? BinaryOp::Div : BinaryOp::Mul);
}

}  // namespace brigade::kernels
