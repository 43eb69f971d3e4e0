// CUDA kernels of optimizer.h.
#include <brigade/kernels/optimizer.h>

#include <brigade/kernels/common/optimizer.h>
#include <brigade/kernels/common/optimizer_math.h>
#include <brigade/kernels/cuda/detail/update_rows.h>

namespace brigade::kernels {

namespace {

void foreach_sgd_step_cuda(std::span<const Tensor> params, std::span<const Tensor> grads,
                           std::span<const Tensor> momentum_buffers, const SgdParams& s) {
  check_foreach_sgd(params, grads, momentum_buffers, s);
  visit_floating(params.front().dtype(), "sgd step", [&]<class T>() {
    using C = compute_type<T>;
    if (momentum_buffers.empty()) {
      cuda::update_rows<T>("sgd_step", {params, grads}, SgdUpdate<C, false>(s));
    } else {
      cuda::update_rows<T>("sgd_step", {params, grads, momentum_buffers}, SgdUpdate<C, true>(s));
    }
  });
}

void foreach_adam_step_cuda(std::span<const Tensor> params, std::span<const Tensor> grads,
                            std::span<const Tensor> exp_avgs, std::span<const Tensor> exp_avg_sqs,
                            std::span<const Tensor> max_exp_avg_sqs, const AdamParams& a) {
  check_foreach_adam(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, a);
  visit_floating(params.front().dtype(), "adam step", [&]<class T>() {
    using C = compute_type<T>;
    if (max_exp_avg_sqs.empty()) {
      cuda::update_rows<T>("adam_step", {params, grads, exp_avgs, exp_avg_sqs}, AdamUpdate<C, false>(a));
    } else {
      cuda::update_rows<T>("adam_step", {params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs},
                           AdamUpdate<C, true>(a));
    }
  });
}

const AddKernel add_foreach_sgd_step(foreach_sgd_step, kCUDA, &foreach_sgd_step_cuda);
const AddKernel add_foreach_adam_step(foreach_adam_step, kCUDA, &foreach_adam_step_cuda);

}  // namespace

}  // namespace brigade::kernels
