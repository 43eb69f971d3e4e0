// What joining tensors shares on every device.
#pragma once

#include <brigade/core/index_error.h>
#include <brigade/kernels/concat.h>

namespace brigade::kernels {

inline constexpr IndexRole kOneHotIndex{"one_hot", "index", "class"};

// The result of cat, not filled. Throws ValueError, ShapeError, DeviceError.
// One of shape [0] joins tensors of any shape, and adds nothing (as in PyTorch).
bool adds_nothing(const Tensor& tensor);
// The first that does not, or the first of all: its dimensions are those of the result.
const Tensor& leading_tensor(std::span<const Tensor> tensors);
Tensor prepare_cat(std::span<const Tensor> tensors, int dim);
// The result of one_hot, zeros. Throws DTypeError, ValueError.
Tensor prepare_one_hot(const Tensor& indices, int64_t classes);

}  // namespace brigade::kernels
