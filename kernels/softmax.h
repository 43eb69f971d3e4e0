// softmax and log_softmax along one dimension, with the row maximum subtracted first. Floating
// dtypes.
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

extern Kernel<Tensor(const Tensor& x, int dim)> softmax;
// Takes the result y of the forward, not x.
extern Kernel<Tensor(const Tensor& grad, const Tensor& y, int dim)> softmax_backward;
extern Kernel<Tensor(const Tensor& x, int dim)> log_softmax;
extern Kernel<Tensor(const Tensor& grad, const Tensor& y, int dim)> log_softmax_backward;

}  // namespace brigade::kernels
