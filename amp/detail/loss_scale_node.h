// The product of a loss and a scale, as a separate operation: its node carries the mark that
// records the scale of the gradients.
#pragma once

#include <brigade/autograd/gradient_scale.h>
#include <brigade/core/tensor.h>

namespace brigade::amp::detail {

// loss * scale; `scale`: float32 without dimensions, on the loss's device.
Tensor scaled_loss(const Tensor& loss, const Tensor& scale, const autograd::ScaleMark& mark);

}  // namespace brigade::amp::detail
