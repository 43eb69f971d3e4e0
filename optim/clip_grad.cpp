#include <brigade/optim/clip_grad.h>

#include <brigade/autograd/write_log.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/reduce.h>
#include <brigade/nn/detail/text.h>

#include <algorithm>
#include <cmath>

namespace brigade::optim {

namespace {

// The sum of |g| (norm 1) or g * g (norm 2), or the largest |g|.
double measure(const Tensor& grad, double norm_type) {
  const Tensor values = is_half(grad.dtype()) ? kernels::cast(grad, kFloat32) : grad;
  const Tensor terms = kernels::unary(values, norm_type == 2 ? kernels::UnaryOp::Square : kernels::UnaryOp::Abs);
  if (!std::isinf(norm_type)) return detail::element_as_double(kernels::sum(terms, {}), 0);
  Tensor largest = terms;
  while (largest.dim() > 0)
    largest = kernels::max(largest, 0, false).values;
  return detail::element_as_double(largest, 0);
}

}  // namespace

double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, const ClipGradNormOptions& options,
                       SourceLocation where) {
  const double p = options.norm_type;
  if (p != 1 && p != 2 && p != INFINITY) {
    throw ValueError("clip_grad_norm_: norm_type must be 1, 2 or infinity, got " + nn::detail::text_of(p) + " (" +
                         to_string(where) + ")",
                     where);
  }
  if (!(max_norm >= 0)) {
    throw ValueError("clip_grad_norm_: max_norm must be at least 0, got " + nn::detail::text_of(max_norm) + " (" +
                         to_string(where) + ")",
                     where);
  }
  std::vector<Tensor> grads;
  for (const Tensor& parameter : parameters) {
    if (!parameter.defined()) continue;
    if (const Tensor grad = parameter.grad(); grad.defined() && grad.numel() > 0) grads.push_back(grad);
  }
  double total = 0;
  for (const Tensor& grad : grads) {
    const double part = measure(grad, p);
    // std::max would drop a NaN.
    total = std::isinf(p) ? (std::isnan(part) || part > total ? part : total) : total + part;
  }
  if (p == 2) total = std::sqrt(total);
  if (options.error_if_nonfinite && !std::isfinite(total)) {
    throw ValueError(
        "The total norm of order " + nn::detail::text_of(p) +
            " for gradients from `parameters` is non-finite, so it cannot be clipped. To disable this error "
            "and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=false` (" +
            to_string(where) + ")",
        where);
  }
  const double factor = max_norm / (total + 1e-6);
  if (factor >= 1) return total;  // false for a NaN, which goes on to the gradients
  for (const Tensor& grad : grads) {
    kernels::scale_inplace(grad, factor);
    grad.bump_version();
    autograd::note_write(grad, "clip_grad_norm_", where);
  }
  return total;
}

}  // namespace brigade::optim
