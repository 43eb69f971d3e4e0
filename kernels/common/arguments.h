// Checks and pointers of tensor arguments that many kernels take.
#pragma once

#include <brigade/core/dtype.h>
#include <brigade/core/error.h>
#include <brigade/core/tensor.h>

namespace brigade::kernels {

// Throws DTypeError naming `what` unless the dtype is floating: one message for all kernels.
inline void check_floating(DType dtype, const char* what) {
  if (is_floating_point(dtype)) return;
  throw DTypeError("{}: expected a floating dtype, got {}; convert with .to(kFloat32)", what, name(dtype));
}

// --- Numbers that a kernel takes as one-element tensors, because their values are in device memory.

// `number` must be on the device of `beside` (if defined). `what`: the kernel, `role`: the argument. Throws ShapeError,
// DeviceError.
void check_number(const char* what, const char* role, const Tensor& number, const Tensor& beside);
// Also throws DTypeError.
void check_number(const char* what, const char* role, const Tensor& number, const Tensor& beside, DType dtype);

// Null for an undefined tensor. The dtype is not checked.
template <class T>
T* data_or_null(const Tensor& tensor) {
  return tensor.defined() ? static_cast<T*>(tensor.raw_data()) : nullptr;
}

}  // namespace brigade::kernels
