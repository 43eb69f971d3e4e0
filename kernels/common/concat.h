// Device-independent parts of cat and one_hot.
#pragma once

#include <brigade/core/index_error.h>
#include <brigade/kernels/concat.h>

namespace brigade::kernels {

inline constexpr IndexRole kOneHotIndex{"one_hot", "index", "class"};

// A tensor of shape [0] can be concatenated with tensors of any shape, and adds nothing (as in PyTorch).
bool adds_nothing(const Tensor& tensor);
// The first tensor that adds elements, or the first one if none does. The result has its dimensions.
const Tensor& leading_tensor(std::span<const Tensor> tensors);
// The result of cat, not filled. Throws ValueError, ShapeError, DeviceError.
Tensor prepare_cat(std::span<const Tensor> tensors, int dim);
// The result of one_hot, zeros. Throws DTypeError, ValueError.
Tensor prepare_one_hot(const Tensor& indices, int64_t classes);

}  // namespace brigade::kernels
