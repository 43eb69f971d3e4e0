#include <brigade/kernels/optimizer.h>

namespace brigade::kernels {

namespace {

std::span<const Tensor> list_of(const Tensor& tensor) {
  return tensor.defined() ? std::span<const Tensor>(&tensor, 1) : std::span<const Tensor>();
}

}  // namespace

void sgd_step(const Tensor& param, const Tensor& grad, const Tensor& momentum_buffer, const SgdParams& options) {
  foreach_sgd_step(list_of(param), list_of(grad), list_of(momentum_buffer), options);
}

void adam_step(const Tensor& param, const Tensor& grad, const Tensor& exp_avg, const Tensor& exp_avg_sq,
               const Tensor& max_exp_avg_sq, const AdamParams& options) {
  foreach_adam_step(list_of(param), list_of(grad), list_of(exp_avg), list_of(exp_avg_sq), list_of(max_exp_avg_sq),
                    options);
}

}  // namespace brigade::kernels
