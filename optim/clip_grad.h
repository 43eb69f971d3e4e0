// Gradient clipping by norm (Pascanu, Mikolov and Bengio, ICML 2013) and by value, like torch.nn.utils.
#pragma once

#include <brigade/core/tensor.h>

#include <vector>

namespace brigade::optim {

struct ClipGradNormOptions {
  double norm_type = 2;  // any number, and plus or minus infinity
  bool error_if_nonfinite = false;
};

// Scales all gradients in place by min(1, max_norm / (total + 1e-6)), where `total`, which is returned, is the norm of
// all of them together. Parameters without a gradient are skipped; with none at all the result is 0. Sums, over tensors
// and within one, are in double. As in PyTorch, the norm of order 0 counts the gradients that are not all zero. A
// non-finite norm propagates to all gradients unless error_if_nonfinite is set: then ValueError "The total norm of
// order 2 for gradients from `parameters` is non-finite, so it cannot be clipped", and nothing has been changed. Throws
// ValueError for a norm_type that is NaN and for a negative max_norm; autograd::ScalerError, which gives the true norm,
// when it would clip gradients that a loss scaler has scaled and that were not unscaled (unless max_norm is so large
// that it was scaled as well: grad-scaler.md).
double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, const ClipGradNormOptions& options = {},
                       SourceLocation where = SourceLocation::current());

// The two halves of clip_grad_norm_, for callers that must not make the host wait, as in a CUDA graph.
//
// The norm of any order (as norm_type above) of all tensors together: float64, of 0 dimensions, on their device; 0 for
// none. Throws ValueError for an order that is NaN, DeviceError for tensors on several devices.
Tensor get_total_norm(const std::vector<Tensor>& tensors, double norm_type = 2,
                      SourceLocation where = SourceLocation::current());
// Scales all gradients in place by min(1, max_norm / (total_norm + 1e-6)). `total_norm`: float32 or float64, one
// element, on the gradients' device. A NaN propagates to all gradients. Throws ValueError for a negative max_norm,
// ShapeError, DTypeError or DeviceError for another kind of `total_norm`, and autograd::ScalerError for gradients that
// were not unscaled.
void clip_grads_with_norm_(const std::vector<Tensor>& parameters, double max_norm, const Tensor& total_norm,
                           SourceLocation where = SourceLocation::current());

// Every element of every gradient becomes at least -clip_value and at most clip_value; a NaN stays. Throws ValueError
// for a negative clip_value; autograd::ScalerError like clip_grad_norm_.
void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value,
                      SourceLocation where = SourceLocation::current());

}  // namespace brigade::optim

// LibTorch's names for these functions.
namespace brigade::nn::utils {
using optim::clip_grad_norm_;
using optim::clip_grad_value_;
using optim::clip_grads_with_norm_;
using optim::get_total_norm;
}  // namespace brigade::nn::utils
