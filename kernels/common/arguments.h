// Tensor arguments of kernels: checks, pointers, and elements of any dtype.
#pragma once

#include <brigade/core/compiler.h>
#include <brigade/core/dtype.h>
#include <brigade/core/error.h>
#include <brigade/core/tensor.h>

#include <cstdint>
#include <type_traits>

namespace brigade::kernels {

// --- Checks and pointers of tensor arguments that many kernels take.

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

// --- Elements of any dtype: dispatch on their size, and conversion.

// --- Dispatch on element size, for kernels that move elements without computing.

// Calls body with an unsigned integer type as wide as an element of the dtype.
template <class Body>
decltype(auto) visit_bits(DType dtype, Body&& body) {
  switch (itemsize(dtype)) {
    case 1: return body(uint8_t{});
    case 2: return body(uint16_t{});
    case 4: return body(uint32_t{});
    default: return body(uint64_t{});
  }
}

// The conversion of copy(). A negative floating number wraps around to a uint8; a direct conversion would be undefined
// behavior.
template <class To, class From>
BRIGADE_HOST_DEVICE To as_element(From x) {
  if constexpr (std::is_same_v<To, uint8_t> && std::is_floating_point_v<From>) {
    return static_cast<To>(static_cast<int64_t>(x));
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace brigade::kernels
