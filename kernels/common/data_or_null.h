// The data pointer of an optional tensor.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade::kernels {

// Null for an undefined tensor. The dtype is not checked.
template <class T>
T* data_or_null(const Tensor& tensor) {
  return tensor.defined() ? static_cast<T*>(tensor.raw_data()) : nullptr;
}

}  // namespace brigade::kernels
