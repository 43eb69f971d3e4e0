// The checks of scales before a step and before clipping, and the texts of their errors.
#include <brigade/optim/detail/scaled_gradients.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/optimizer.h>

namespace brigade::optim::detail {

using autograd::ScaleFault;
using autograd::ScaleKnown;
using autograd::ScaleLabel;
using autograd::ScaleOrigin;
using autograd::ScalerError;
using autograd::ScaleStamp;
using brigade::detail::in_words;

std::string parameter_in_words(const Tensor& parameter, size_t position) {
  const autograd::AutogradMeta* const known = autograd::meta(parameter);
  if (known && !known->registered_as.empty()) return "'" + known->registered_as + "'";
  return "parameter " + std::to_string(position);
}

std::string origin_in_words(const ScaleOrigin& origin) {
  const std::string backward = "backward at " + to_string(origin.backward_at);
  if (origin.is_unscaled()) {
    return "unscaled (" + backward + ", unscale_() at " + to_string(origin.unscaled_at) + " divided by " +
           in_words(origin.unscaled_by) + ")";
  }
  if (origin.scaler == 0) return "not scaled (" + backward + ")";
  return "scale " + in_words(origin.scale) + " (scale() at " + to_string(origin.scaled_at) + ", " + backward + ")";
}

namespace {

std::string cure_of(const ScaleOrigin& first, const ScaleOrigin& second) {
  if (first.is_unscaled() || second.is_unscaled()) {
    return "call unscale_() and step() after the last backward of an accumulation, and zero_grad() before the next one";
  }
  if (first.scaler == 0 || second.scaler == 0) {
    return first.backward_at.line() == second.backward_at.line()
               ? "scale the sum of the two losses, scaler.scale(a + b).backward(): only one is scaled"
               : "scale both losses, each by scaler.scale(loss).backward(): only one is scaled";
  }
  if (first.scaler != second.scaler) return "use one scaler for all losses that reach the same parameters";
  return "call update() after the step that ends an accumulation, not within: it may change the scale";
}

// The first gradient that still carries a scale, and the number of others that do.
struct Finding {
  std::string parameter;
  ScaleLabel label;
  size_t others = 0;
};

bool is_scaled(const ScaleLabel& label) { return label == ScaleKnown::One && label.first.scale != 1; }
bool carries_scale(const ScaleLabel& label) { return label == ScaleKnown::Mixed || is_scaled(label); }

// Whether a limit was scaled on purpose, as in max_norm * scaler.get_scale(): no unscaled limit comes near a scale of
// the usual size.
bool is_scaled_limit(double limit, double scale) { return limit >= (scale >= 1024 ? scale / 32 : scale); }

}  // namespace

ScaleFault mixture_fault(const ScaleLabel& label) {
  return {
      .text = "holds parts of two scales: " + origin_in_words(label.first) + ", and " + origin_in_words(label.second),
      .advice = cure_of(label.first, label.second)};
}

bool is_all_zero(const Tensor& gradient) {
  if (gradient.numel() == 0) return true;
  const Tensor largest = empty({1}, {kFloat64, gradient.device()});
  kernels::foreach_norm(std::span(&gradient, 1), kernels::NormTerm::MaxAbs, largest);
  return brigade::detail::element_as_double(largest, 0) == 0;
}

std::optional<ScaleFault> scale_fault_of_step(std::span<const Tensor> parameters) {
  std::optional<ScaleFault> fault;
  for_each_labelled(parameters, [&](size_t i, const Tensor&, const Tensor& gradient, ScaleStamp& stamp) {
    if (!carries_scale(stamp.label)) return;
    stamp.settle(gradient);
    if (!carries_scale(stamp.label) || is_all_zero(gradient)) return;
    if (fault) {
      ++fault->others;
      return;
    }
    if (stamp.label == ScaleKnown::Mixed) {
      fault = mixture_fault(stamp.label);
    } else {
      fault = ScaleFault{.text = "is " + in_words(stamp.label.first.scale) +
                                 " times too large, since nothing has unscaled it: its scale is " +
                                 origin_in_words(stamp.label.first).substr(6),
                         .advice =
                             "call scaler.step(optimizer) in place of optimizer.step(), or "
                             "scaler.unscale_(optimizer) before it; under a Fabric, step() of what fabric.setup() "
                             "has returned (set_grad() says that it was unscaled through a raw pointer)"};
    }
    fault->position = i;
  });
  return fault;
}

void throw_scale_fault(const std::string& function, std::span<const Tensor> parameters, const ScaleFault& fault,
                       SourceLocation where) {
  throw_scaler_error(where, "Wrong scale: the gradient of {}{}, for {} at {} (not taken).\nwhy: it {}.\ndo:  {}.",
                     parameter_in_words(parameters[fault.position], fault.position),
                     fault.others == 0 ? "" : " and " + std::to_string(fault.others) + " more", function,
                     to_string(where), fault.text, fault.advice);
}

void check_scale_of_clipping(const Clipping& clipping, std::span<const Tensor> parameters, SourceLocation where) {
  Finding finding;
  bool alike = true;
  bool is_half_type = false;
  size_t labelled = 0, gradients = 0;
  for (const Tensor& parameter : parameters)
    gradients += parameter.defined() && parameter.grad().defined();
  for_each_labelled(parameters, [&](size_t i, const Tensor& parameter, const Tensor& gradient, ScaleStamp& stamp) {
    if (stamp.label == ScaleKnown::One) ++labelled;
    if (!is_scaled(stamp.label)) return;
    if (finding.parameter.empty()) {
      finding.parameter = parameter_in_words(parameter, i);
      finding.label = stamp.label;
    } else {
      ++finding.others;
    }
    alike = alike && stamp.label.first.scale == finding.label.first.scale;
    is_half_type = is_half_type || gradient.dtype() == kFloat16;
  });
  if (finding.parameter.empty() || is_scaled_limit(clipping.limit, finding.label.first.scale)) return;
  const double scale = finding.label.first.scale;
  alike = alike && labelled == gradients && finding.others + 1 == gradients;
  const std::string truth = alike
                                ? "the true " + std::string(clipping.measure) + " is " + in_words(clipping.seen / scale)
                                : "only some of the gradients are scaled";
  throw_scaler_error(
      where,
      "{} at {} limits scaled gradients by {} {} (nothing was changed).\nwhy: the {} seen is {}, {}; the gradient of {} "
      "has {}.\ndo:  {}.",
      clipping.function, to_string(where), clipping.limit_name, clipping.limit, clipping.measure, clipping.seen, truth,
      finding.parameter, origin_in_words(finding.label.first),
      is_half_type ? "clip float16 gradients by the limit times scaler.get_scale(): they cannot be unscaled"
                   : "call scaler.unscale_(optimizer) before clipping");
}

void settle_scales(std::span<const Tensor> parameters) {
  for_each_labelled(parameters,
                    [](size_t, const Tensor&, const Tensor& gradient, ScaleStamp& stamp) { stamp.settle(gradient); });
}

void keep_scales(std::span<const Tensor> parameters) {
  for_each_labelled(
      parameters, [](size_t, const Tensor&, const Tensor& gradient, ScaleStamp& stamp) { stamp.on_change(gradient); });
}

bool any_scaled(std::span<const Tensor> parameters) {
  bool any = false;
  for_each_labelled(parameters, [&](size_t, const Tensor&, const Tensor&, ScaleStamp& stamp) {
    any = any || is_scaled(stamp.label);
  });
  return any;
}

}  // namespace brigade::optim::detail
