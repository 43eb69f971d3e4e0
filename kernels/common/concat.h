// What joining tensors shares on every device.
#pragma once

#include <brigade/core/index_error.h>
#include <brigade/kernels/concat.h>

namespace brigade::kernels {

inline constexpr IndexRole kOneHotIndex{"one_hot", "index", "class"};

// The result of cat, not filled. Throws ValueError, ShapeError, DeviceError.
Tensor prepare_cat(std::span<const Tensor> tensors, int dim);
// The result of one_hot, zeros. Throws DTypeError, ValueError.
Tensor prepare_one_hot(const Tensor& indices, int64_t classes);

}  // namespace brigade::kernels
