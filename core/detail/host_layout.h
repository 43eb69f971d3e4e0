// The elements of a tensor as files store them: on the host, in row-major order, and with valid bool bytes.
#pragma once

#include <brigade/core/tensor.h>

#include <string>

namespace brigade::detail {

// Returns `tensor` itself if it is on the host and in row-major order already.
Tensor row_major_on_host(const Tensor& tensor);

// bool has two values; a byte that is neither 0 nor 1 would be undefined behaviour wherever it is
// read. Throws IoError that begins with `what`. Does nothing for other dtypes.
void check_bool_bytes(DType dtype, const void* data, size_t count, const std::string& what);

}  // namespace brigade::detail
