// Finds gradients that still carry a loss scaler's factor where they are used, by their stamps
// (autograd/gradient_scale.h), and describes them.
#pragma once

#include <brigade/autograd/meta.h>
#include <brigade/core/error.h>
#include <brigade/core/place.h>

#include <optional>
#include <span>
#include <string>
#include <type_traits>

namespace brigade::optim::detail {

// "'fc1.weight'", or "parameter 3" where it has no name.
std::string parameter_in_words(const Tensor& parameter, size_t position);
// "scale 1024 (scale() at a.cpp:3, backward at a.cpp:3)"
std::string origin_in_words(const autograd::ScaleOrigin& origin);
// The fault of a gradient with two scales: "holds parts of two scales: ..., and ...".
autograd::ScaleFault mixture_fault(const autograd::ScaleLabel& label);
// Throws ScalerError with the arguments that an Error takes.
template <class... Args>
[[noreturn]] void throw_scaler_error(SourceLocation where,
                                     brigade::detail::ErrorText<std::type_identity_t<Args>...> text,
                                     const Args&... args) {
  const std::string message = brigade::detail::fill_in(text.text, {brigade::detail::in_words(args)...});
  throw autograd::ScalerError(with_short_places(message), where);
}
// Whether every element is 0: then its scale does not matter. Waits for the device.
bool is_all_zero(const Tensor& gradient);

// Calls f(position, parameter, gradient, stamp) for each parameter whose gradient has a label.
template <class F>
void for_each_labelled(std::span<const Tensor> parameters, F&& f) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    autograd::AutogradMeta* const known = parameters[i].defined() ? autograd::meta(parameters[i]) : nullptr;
    if (!known || !known->grad.defined() || known->stamp.scale.label == autograd::ScaleKnown::Nothing) continue;
    f(i, parameters[i], known->grad, known->stamp.scale);
  }
}

// The fault of the first gradient used by a step that was not unscaled, or only in part.
std::optional<autograd::ScaleFault> scale_fault_of_step(std::span<const Tensor> parameters);
// Throws the fault as an autograd::ScalerError. `function`: "SGD.step()".
[[noreturn]] void throw_scale_fault(const std::string& function, std::span<const Tensor> parameters,
                                    const autograd::ScaleFault& fault, SourceLocation where);

// The comparison that clipping is about to make: the norm, or the largest element, and the limit.
struct Clipping {
  const char* function;  // "clip_grad_norm_"
  const char* measure;   // "norm"
  const char* limit_name;
  double seen;
  double limit;
};
// Throws autograd::ScalerError when gradients would be clipped by a limit meant for unscaled ones. (A large limit is
// assumed to be scaled on purpose: grad-scaler.md.)
void check_scale_of_clipping(const Clipping& clipping, std::span<const Tensor> parameters, SourceLocation where);
// Call before and after a change that preserves the scale.
void settle_scales(std::span<const Tensor> parameters);
void keep_scales(std::span<const Tensor> parameters);
// Whether any gradient still carries a scale.
bool any_scaled(std::span<const Tensor> parameters);

}  // namespace brigade::optim::detail
