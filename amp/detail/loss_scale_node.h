// The product of a loss and a scale, as an operation of its own: its node carries the mark by which
// gradients know their scale.
#pragma once

#include <brigade/autograd/gradient_scale.h>
#include <brigade/core/tensor.h>

namespace brigade::amp::detail {

// loss * scale; `scale`: float32 without dimensions, on the loss's device.
Tensor scaled_loss(const Tensor& loss, const Tensor& scale, const autograd::ScaleMark& mark);

}  // namespace brigade::amp::detail
