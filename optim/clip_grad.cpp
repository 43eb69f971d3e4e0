// The total norm over all gradients by a few kernels, then scaling or clipping in place.
#include <brigade/optim/clip_grad.h>

#include <brigade/autograd/listener.h>
#include <brigade/autograd/write_log.h>
#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/common/arguments.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/indexing.h>
#include <brigade/kernels/optimizer.h>
#include <brigade/kernels/reduce.h>
#include <brigade/optim/detail/batches.h>
#include <brigade/optim/detail/device_state.h>
#include <brigade/optim/detail/scaled_gradients.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace brigade::optim {
namespace {

std::vector<detail::Batch> batches_of(const std::vector<Tensor>& tensors) {
  return detail::batches(tensors, [](size_t) { return 0; });
}

// The orders that a kernel over many tensors computes.
bool is_common(double p) { return p == 1 || p == 2 || p == INFINITY; }

// For each tensor of a batch the sum of its squares (norm 2) or of |g| (norm 1), or the largest |g|; for other, rarely
// used orders its norm, with one kernel each. float64, on the batch's device.
Tensor terms_of(const std::vector<Tensor>& tensors, const detail::Batch& batch, double p) {
  Tensor terms = empty({static_cast<int64_t>(batch.members.size())}, {kFloat64, batch.device});
  if (!is_common(p)) {
    for (size_t i = 0; i < batch.members.size(); ++i) {
      const Tensor wide = kernels::cast(tensors[batch.members[i]], kFloat64);
      kernels::copy(view::select(terms, 0, static_cast<int64_t>(i)), kernels::norm(wide, p, {}, false));
    }
    return terms;
  }
  const kernels::NormTerm term = p == 2   ? kernels::NormTerm::SumOfSquares
                                 : p == 1 ? kernels::NormTerm::SumOfAbs
                                          : kernels::NormTerm::MaxAbs;
  kernels::foreach_norm(batch.of(tensors), term, terms);
  return terms;
}

// The terms of all gradients, on the host, which waits once per device and dtype.
std::vector<double> terms_of(const std::vector<Tensor>& grads, const std::vector<detail::Batch>& batches, double p) {
  std::vector<Tensor> results;
  for (const detail::Batch& batch : batches)
    results.push_back(terms_of(grads, batch, p));
  std::vector<double> terms(grads.size());
  for (size_t b = 0; b < batches.size(); ++b) {
    Tensor here = results[b];
    if (batches[b].device.type != kCPU) {
      here = empty(here.sizes(), kFloat64);
      kernels::copy(here, results[b]);
    }
    for (size_t i = 0; i < batches[b].members.size(); ++i)
      terms[batches[b].members[i]] = static_cast<const double*>(here.raw_data())[i];
  }
  return terms;
}

double total_norm(const std::vector<Tensor>& grads, const std::vector<detail::Batch>& batches, double p) {
  if (grads.empty()) return 0;
  const std::vector<double> terms = terms_of(grads, batches, p);
  if (p == 0) return static_cast<double>(terms.size() - static_cast<size_t>(std::ranges::count(terms, 0.0)));
  double total = std::isinf(p) ? terms.front() : 0;
  for (const double term : terms) {
    if (std::isinf(p)) {
      // std::max would drop a NaN.
      const bool further = p > 0 ? term > total : term < total;
      total = std::isnan(term) || further ? term : total;
    } else {
      total += is_common(p) ? term : std::pow(term, p);
    }
  }
  return std::isinf(p) || p == 1 ? total : p == 2 ? std::sqrt(total) : std::pow(total, 1 / p);
}

std::vector<Tensor> gradients_of(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> grads;
  for (const Tensor& parameter : parameters) {
    if (!parameter.defined()) continue;
    if (const Tensor grad = parameter.grad(); grad.defined() && grad.numel() > 0) grads.push_back(grad);
  }
  return grads;
}

void note_change(const std::vector<Tensor>& parameters, const std::vector<Tensor>& grads, const char* what,
                 SourceLocation where) {
  for (const Tensor& grad : grads) {
    grad.bump_version();
    autograd::note_write(grad, what, where);
  }
  detail::keep_scales(parameters);
}

}  // namespace

double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, const ClipGradNormOptions& options,
                       SourceLocation where) {
  const double p = options.norm_type;
  if (std::isnan(p)) throw ValueError("clip_grad_norm_: norm_type is not a number", where);
  if (!(max_norm >= 0)) {
    throw ValueError(where, "clip_grad_norm_: max_norm must be at least 0, got {}", max_norm);
  }
  autograd::announce_reading(parameters);
  const std::vector<Tensor> grads = gradients_of(parameters);
  if (!grads.empty() && detail::is_captured(grads.front())) {
    throw ValueError(
        where,
        "clip_grad_norm_: the norm goes to the host, which cannot be captured into a graph. Call "
        "clip_grads_with_norm_(parameters, max_norm, get_total_norm(gradients)), which stays on the device");
  }
  const std::vector<detail::Batch> batches = batches_of(grads);
  const double total = total_norm(grads, batches, p);
  if (options.error_if_nonfinite && !std::isfinite(total)) {
    throw ValueError(
        where,
        "The total norm of order {} for gradients from `parameters` is non-finite, so it cannot be clipped. To "
        "disable this error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=false`",
        p);
  }
  const double factor = max_norm / (total + 1e-6);
  if (factor >= 1) return total;  // false for a NaN, which propagates to the gradients
  detail::settle_scales(parameters);
  // A scaler skips the step if gradients are not finite; the norm of order 0 does not depend on the scale.
  if (std::isfinite(total) && p != 0)
    detail::check_scale_of_clipping({"clip_grad_norm_", "norm", "max_norm", total, max_norm}, parameters, where);
  for (const detail::Batch& batch : batches)
    kernels::foreach_scale(batch.of(grads), factor, Tensor());
  note_change(parameters, grads, "clip_grad_norm_", where);
  return total;
}

Tensor get_total_norm(const std::vector<Tensor>& tensors, double norm_type, SourceLocation where) {
  const double p = norm_type;
  if (std::isnan(p)) throw ValueError("get_total_norm: norm_type is not a number", where);
  std::vector<Tensor> filled;  // an empty one changes no norm
  for (const Tensor& tensor : tensors) {
    if (tensor.numel() > 0) filled.push_back(tensor);
  }
  std::vector<Tensor> terms;
  for (const detail::Batch& batch : batches_of(filled)) {
    if (!terms.empty() && batch.device != terms.front().device()) {
      throw DeviceError(where, "get_total_norm: expected tensors on one device, got some on {} and on {}",
                        terms.front().device(), batch.device);
    }
    terms.push_back(terms_of(filled, batch, p));
  }
  if (terms.empty()) return zeros({}, kFloat64);
  const Tensor all = terms.size() == 1 ? terms.front() : kernels::cat(std::span<const Tensor>(terms), 0);
  if (!is_common(p)) return kernels::norm(all, p, {}, false);
  if (p == INFINITY) return kernels::amax(all, {0}, false);
  const Tensor total = kernels::sum(all, {});
  return p == 2 ? kernels::unary(total, kernels::UnaryOp::Sqrt) : total;
}

void clip_grads_with_norm_(const std::vector<Tensor>& parameters, double max_norm, const Tensor& total_norm,
                           SourceLocation where) {
  const char* const what = "clip_grads_with_norm_";
  if (!(max_norm >= 0)) throw ValueError(where, "{}: max_norm must be at least 0, got {}", what, max_norm);
  const std::vector<Tensor> grads = gradients_of(parameters);
  if (grads.empty()) return;
  kernels::check_number(what, "total_norm", total_norm, grads.front());
  if (total_norm.dtype() != kFloat32 && total_norm.dtype() != kFloat64)
    throw DTypeError(where, "{}: expected a total_norm of float32 or float64, got {}", what, describe(total_norm));
  autograd::announce_reading(parameters);
  detail::settle_scales(parameters);
  if (detail::any_scaled(parameters)) {
    detail::throw_scaler_error(
        where,
        "{} at {} limits scaled gradients by max_norm {} (nothing was changed).\nwhy: nothing has "
        "unscaled them.\ndo:  call scaler.unscale_(optimizer) before get_total_norm().",
        what, to_string(where), max_norm);
  }
  // max_norm / (total + 1e-6), at most 1; a NaN stays.
  const Tensor total = kernels::binary_scalar(kernels::cast(total_norm, kFloat64), 1e-6, kernels::BinaryOp::Add, false);
  const Tensor ratio = kernels::binary_scalar(total, max_norm, kernels::BinaryOp::Div, true);
  const Tensor factor = kernels::clamp(ratio, {.lower = std::nullopt, .upper = 1});
  for (const detail::Batch& batch : batches_of(grads))
    kernels::foreach_scale(batch.of(grads), 1, factor);
  note_change(parameters, grads, what, where);
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value, SourceLocation where) {
  if (!(clip_value >= 0)) {
    throw ValueError(where, "clip_grad_value_: clip_value must be at least 0, got {}", clip_value);
  }
  autograd::announce_reading(parameters);
  const std::vector<Tensor> grads = gradients_of(parameters);
  const std::vector<detail::Batch> batches = batches_of(grads);
  detail::settle_scales(parameters);
  if (detail::any_scaled(parameters)) {
    const double largest = total_norm(grads, batches, INFINITY);
    if (std::isfinite(largest) && largest > clip_value) {
      detail::check_scale_of_clipping({"clip_grad_value_", "largest element", "clip_value", largest, clip_value},
                                      parameters, where);
    }
  }
  for (const detail::Batch& batch : batches)
    kernels::foreach_clip(batch.of(grads), clip_value);
  note_change(parameters, grads, "clip_grad_value_", where);
}

}  // namespace brigade::optim
