#include <brigade/optim/clip_grad.h>

#include <brigade/autograd/write_log.h>
#include <brigade/core/factory.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/foreach.h>
#include <brigade/nn/detail/text.h>
#include <brigade/optim/detail/batches.h>

#include <algorithm>
#include <cmath>

namespace brigade::optim {

namespace {

// Of each gradient the sum of its squares (norm 2) or of |g| (norm 1), or the largest |g|. The host waits once per
// device and dtype.
std::vector<double> terms_of(const std::vector<Tensor>& grads, const std::vector<detail::Batch>& batches, double p) {
  const kernels::NormTerm term = p == 2   ? kernels::NormTerm::SumOfSquares
                                 : p == 1 ? kernels::NormTerm::SumOfAbs
                                          : kernels::NormTerm::MaxAbs;
  std::vector<Tensor> results;
  for (const detail::Batch& batch : batches) {
    results.push_back(empty({static_cast<int64_t>(batch.members.size())}, {kFloat64, batch.device}));
    kernels::foreach_norm(batch.of(grads), term, results.back());
  }
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
  const std::vector<detail::Batch> batches = detail::batches(grads, [](size_t) { return 0; });
  for (const double part : terms_of(grads, batches, p)) {
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
  for (const detail::Batch& batch : batches)
    kernels::foreach_scale(batch.of(grads), factor, Tensor());
  for (const Tensor& grad : grads) {
    grad.bump_version();
    autograd::note_write(grad, "clip_grad_norm_", where);
  }
  return total;
}

}  // namespace brigade::optim
