// Creates tensors, uninitialized or from host data. (zeros, ones, randn, ... need kernels: kernels/factory.h.)
#pragma once

#include <brigade/core/nested_list.h>
#include <brigade/core/tensor.h>

#include <type_traits>

namespace brigade {

class DeviceRuntime;

// Uninitialised, contiguous.
Tensor empty(const Shape& sizes, TensorOptions options = {});
Tensor empty_like(const Tensor& tensor);
Tensor empty_like(const Tensor& tensor, DType dtype);

// A CPU tensor with the given values in row-major order; throws ShapeError when the count does not
// fit.
template <class T>
Tensor from_values(std::span<const T> values, const Shape& sizes);
// tensor({{1, 2}, {3, 4}}), tensor({0.5, 1}), tensor(7): int64 from whole numbers, float32 from others, bool from
// bools, as in libtorch, unless `options` names a dtype; on the CPU, or on the device of `options`. Throws ShapeError
// for entries of different shapes.
Tensor tensor(const NestedList& values);
Tensor tensor(const NestedList& values, TensorOptions options);
// tensor<double>({1, 2}): with the dtype that is named; also from a vector in row-major order.
template <class T>
Tensor tensor(std::type_identity_t<std::initializer_list<T>> values) {
  return from_values(std::span<const T>(values.begin(), values.size()), {static_cast<int64_t>(values.size())});
}
template <class T>
Tensor tensor(const std::vector<T>& values, const Shape& sizes) {
  return from_values(std::span<const T>(values), sizes);
}
// A tensor without dimensions: float32 (as in libtorch, whatever the number is), or of the dtype
// that is named.
Tensor scalar_tensor(double value, TensorOptions options = {});
template <class T>
requires std::is_arithmetic_v<T> Tensor scalar_tensor(std::type_identity_t<T> value) {
  return from_values(std::span<const T>(&value, 1), {});
}

// Uninitialized, in host memory for copies that run concurrently with the CPU
// (DeviceRuntime::allocate_pinned). Throws ShapeError, OutOfMemoryError.
Tensor empty_pinned(const DeviceRuntime& runtime, const Shape& sizes, DType dtype);
// A tensor over external memory, which its owner keeps alive; `release` (may be empty) is called
// when the last user is gone.
Tensor from_blob(void* data, const Shape& sizes, TensorOptions options = {}, std::function<void()> release = {});

}  // namespace brigade
