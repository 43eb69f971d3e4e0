// Argument checks of optimizer steps, and the steps of a single parameter.
#include <brigade/kernels/optimizer.h>

#include <brigade/kernels/common/adam_clock.h>
#include <brigade/kernels/common/foreach.h>
#include <brigade/kernels/common/number_argument.h>
#include <brigade/kernels/common/optimizer.h>

#include <cmath>
#include <string>

namespace brigade::kernels {

void check_step(const char* what, std::span<const Tensor> params, std::initializer_list<StepList> lists) {
  for (const StepList& list : lists) {
    if (list.tensors.size() == params.size() || (list.may_be_empty && list.tensors.empty())) continue;
    throw ShapeError("{}: expected one {} per parameter, got {} for {}", what, list.role, list.tensors.size(),
                     params.size());
  }
  check_alike(what, params);
  for (size_t i = 0; i < params.size(); ++i) {
    const Tensor& param = params[i];
    for (const StepList& list : lists) {
      if (list.tensors.empty()) continue;
      const Tensor& other = list.tensors[i];
      if (other.defined() && other.sizes() == param.sizes() && other.dtype() == param.dtype() &&
          other.device() == param.device() && other.is_contiguous() && param.is_contiguous())
        continue;
      throw ShapeError("optimizer step: {} must be contiguous and like the parameter {}, got {}", list.role,
                       describe(param), describe(other));
    }
  }
}

namespace {

template <class Options>
void check_device_numbers(const char* what, TensorList params, const Options& options) {
  for (const auto& [role, number] :
       {std::pair("device_factor", &options.device_factor), {"found_inf", &options.found_inf}}) {
    if (number->defined() && !params.empty()) check_number(what, role, *number, params.front(), kFloat32);
  }
  if (options.device_lr.defined() && !params.empty())
    check_number(what, "device_lr", options.device_lr, params.front(), kFloat64);
}

}  // namespace

void check_foreach_sgd(TensorList params, TensorList grads, TensorList momentum_buffers, const SgdParams& options) {
  check_device_numbers("foreach_sgd_step", params, options);
  check_step("foreach_sgd_step", params, {{"gradient", grads}, {"momentum buffer", momentum_buffers, true}});
}

void check_foreach_adam(TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                        TensorList max_exp_avg_sqs, const AdamParams& options) {
  const char* const what = "foreach_adam_step";
  check_device_numbers(what, params, options);
  if (options.clock.defined()) {
    check_adam_clock(what, options.clock);
    if (!params.empty() && options.clock.device() != params.front().device())
      throw DeviceError("{}: expected a clock on {}, got {}", what, params.front().device(), describe(options.clock));
  }
  check_step(what, params,
             {{"gradient", grads},
              {"exp_avg", exp_avgs},
              {"exp_avg_sq", exp_avg_sqs},
              {"max_exp_avg_sq", max_exp_avg_sqs, true}});
}

void check_foreach_rmsprop(TensorList params, TensorList grads, TensorList square_avgs, TensorList grad_avgs,
                           TensorList momentum_buffers) {
  check_step("foreach_rmsprop_step", params,
             {{"gradient", grads},
              {"square_avg", square_avgs},
              {"grad_avg", grad_avgs, true},
              {"momentum buffer", momentum_buffers, true}});
}

void check_foreach_adagrad(TensorList params, TensorList grads, TensorList sums) {
  check_step("foreach_adagrad_step", params, {{"gradient", grads}, {"sum", sums}});
}

void check_foreach_adadelta(TensorList params, TensorList grads, TensorList square_avgs, TensorList acc_deltas) {
  check_step("foreach_adadelta_step", params,
             {{"gradient", grads}, {"square_avg", square_avgs}, {"acc_delta", acc_deltas}});
}

void check_foreach_lion(TensorList params, TensorList grads, TensorList exp_avgs) {
  check_step("foreach_lion_step", params, {{"gradient", grads}, {"exp_avg", exp_avgs}});
}

void check_foreach_radam(TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs) {
  check_step("foreach_radam_step", params, {{"gradient", grads}, {"exp_avg", exp_avgs}, {"exp_avg_sq", exp_avg_sqs}});
}

void check_foreach_nadam(TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs) {
  check_step("foreach_nadam_step", params, {{"gradient", grads}, {"exp_avg", exp_avgs}, {"exp_avg_sq", exp_avg_sqs}});
}

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

double nadam_mu(double beta1, double momentum_decay, int64_t step) {
  return beta1 * (1 - 0.5 * std::pow(0.96, static_cast<double>(step) * momentum_decay));
}

}  // namespace brigade::kernels
