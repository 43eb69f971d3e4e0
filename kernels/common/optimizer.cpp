// Argument checks of the optimizer steps and what they need on the device, and the steps of a single parameter.
#include <brigade/kernels/optimizer.h>

#include <brigade/kernels/common/arguments.h>
#include <brigade/kernels/common/optimizer.h>
#include <brigade/kernels/factory.h>

#include <cmath>

namespace brigade::kernels {

// --- Argument checks of the foreach kernels.

void check_alike(const char* what, std::span<const Tensor> tensors) {
  for (const Tensor& tensor : tensors) {
    const Tensor& first = tensors.front();
    if (!is_floating_point(tensor.dtype()) || tensor.dtype() != first.dtype()) {
      throw DTypeError("{}: expected tensors of one floating dtype, got {} and {}; one call per dtype", what,
                       describe(first), describe(tensor));
    }
    if (tensor.device() != first.device()) {
      throw DeviceError("{}: expected tensors on one device, got {} and {}; one call per device", what, describe(first),
                        describe(tensor));
    }
  }
}

namespace {

// The first tensor (for its device), or an undefined one.
Tensor first_of(std::span<const Tensor> tensors) { return tensors.empty() ? Tensor() : tensors.front(); }

}  // namespace

void check_unscale(std::span<const Tensor> grads, const Tensor& inv_scale, const Tensor& found_inf) {
  const char* what = "foreach_unscale";
  check_alike(what, grads);
  check_number(what, "inv_scale", inv_scale, first_of(grads), kFloat32);
  check_number(what, "found_inf", found_inf, first_of(grads), kFloat32);
}

void check_norm(std::span<const Tensor> tensors, const Tensor& out) {
  const char* what = "foreach_norm";
  check_alike(what, tensors);
  if (out.dtype() != kFloat64) throw DTypeError("foreach_norm: out must be float64, got {}", describe(out));
  if (static_cast<size_t>(out.numel()) != tensors.size() || !out.is_contiguous()) {
    throw ShapeError("foreach_norm: out must be contiguous with one element per tensor ({}), got {}", tensors.size(),
                     describe(out));
  }
  if (!tensors.empty() && out.device() != tensors.front().device()) {
    throw DeviceError("foreach_norm: out must be on {}, got {}", tensors.front().device(), describe(out));
  }
}

void check_clip(std::span<const Tensor> tensors, double bound) {
  check_alike("foreach_clip", tensors);
  if (!(bound >= 0)) throw ValueError("foreach_clip: bound must be at least 0, got {}", bound);
}

void check_scale(std::span<const Tensor> tensors, const Tensor& by) {
  const char* what = "foreach_scale";
  check_alike(what, tensors);
  if (!by.defined()) return;
  check_number(what, "by", by, first_of(tensors));
  if (by.dtype() != kFloat32 && by.dtype() != kFloat64)
    throw DTypeError("foreach_scale: by must be float32 or float64, got {}", describe(by));
}

// --- Creates an Adam clock, and checks the arguments of its kernels.

Tensor make_adam_clock(int64_t steps, Device device) {
  return full({3}, static_cast<double>(steps), {kFloat64, device});
}

void check_adam_clock(const char* what, const Tensor& clock) {
  if (clock.dtype() != kFloat64) throw DTypeError("{}: expected a clock of float64, got {}", what, describe(clock));
  if (clock.sizes() != std::vector<int64_t>{3} || !clock.is_contiguous())
    throw ShapeError("{}: expected a contiguous clock of shape [3], got {}", what, describe(clock));
}

AdamClockAdvance adam_clock_advance(const Tensor& clock, const Tensor& found_inf, double beta1, double beta2) {
  const char* const what = "advance_adam_clock";
  check_adam_clock(what, clock);
  if (found_inf.defined()) check_number(what, "found_inf", found_inf, clock, kFloat32);
  return {.clock = clock.data_ptr<double>(),
          .found_inf = data_or_null<const float>(found_inf),
          .beta1 = beta1,
          .beta2 = beta2};
}

// --- Optimizer steps.

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

// --- Argument checks of update_loss_scale.

LossScaleUpdate loss_scale_update(const Tensor& scale, const Tensor& inverse, const Tensor& growth_tracker,
                                  const Tensor& found_inf, const LossScaleRule& rule) {
  const char* const what = "update_loss_scale";
  check_number(what, "scale", scale, scale, kFloat32);
  check_number(what, "inverse", inverse, scale, kFloat32);
  check_number(what, "growth_tracker", growth_tracker, scale, kInt64);
  check_number(what, "found_inf", found_inf, scale, kFloat32);
  return {.scale = scale.data_ptr<float>(),
          .inverse = inverse.data_ptr<float>(),
          .growth_tracker = growth_tracker.data_ptr<int64_t>(),
          .found_inf = found_inf.data_ptr<float>(),
          .rule = rule};
}

}  // namespace brigade::kernels
