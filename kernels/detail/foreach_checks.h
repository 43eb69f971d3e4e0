// What the kernels over many tensors demand of their arguments, on every device.
#pragma once

#include <brigade/kernels/foreach.h>
#include <brigade/kernels/optimizer.h>

#include <initializer_list>
#include <utility>

namespace brigade::kernels {

// Throws ShapeError unless each tensor that is defined is contiguous and like the parameter.
void check_optimizer_tensors(const Tensor& param, std::initializer_list<std::pair<const char*, const Tensor*>> tensors);
// Each list has one tensor per parameter; those named may be empty as a whole.
void check_foreach_sgd(std::span<const Tensor> params, std::span<const Tensor> grads,
                       std::span<const Tensor> momentum_buffers);
void check_foreach_adam(std::span<const Tensor> params, std::span<const Tensor> grads, std::span<const Tensor> exp_avgs,
                        std::span<const Tensor> exp_avg_sqs, std::span<const Tensor> max_exp_avg_sqs);

void check_unscale(std::span<const Tensor> grads, const Tensor& inv_scale, const Tensor& found_inf);
void check_norm(std::span<const Tensor> tensors, const Tensor& out);
void check_scale(std::span<const Tensor> tensors, const Tensor& by);

}  // namespace brigade::kernels
