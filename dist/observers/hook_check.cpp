// Compares the probe of each bucket with the mean of the ranks' probes.
#include <brigade/dist/observers/hook_check.h>

#include <brigade/core/factory.h>
#include <brigade/dist/observers/norm_meter.h>
#include <brigade/dist/reducer/round.h>
#include <brigade/kernels/bucket.h>

#include <cmath>
#include <utility>

namespace brigade::dist {
namespace {

// kernels::probe(); waits for a device.
double probe_of(const Tensor& gradients) {
  if (gradients.device() == Device()) return kernels::probe(gradients);
  const Tensor value = empty({1}, {kFloat64, gradients.device()});
  kernels::bucket_probe(gradients, value);
  return brigade::detail::element_as_double(value, 0);
}

}  // namespace

void HookCheck::on_begin(const Round& round, const autograd::Plan*) {
  probes_.assign(round.setup().hook ? round.buckets().size() : 0, 0);
  undecided_.clear();
  wrong_.clear();
}

HookResult HookCheck::result_of(const Round& round, uint32_t bucket) const {
  const CommHook& hook = *round.setup().hook;
  const Tensor& reduced = round.buckets()[bucket].payload.gradients();
  const NormMeter::Reading sent = NormMeter::reading_of(round.buckets()[bucket].payload);
  HookResult found{.hook = hook.name(),
                   .bucket = round.describe(bucket),
                   // 0 disables the check of the scale.
                   .expected_probe = hook.is_approximate() ? 0 : sent.probe,
                   .found_probe = probe_of(reduced),
                   .norm = sent.norm,
                   .was_finite = sent.finite,
                   .parameters = {}};
  const bool is_finite = std::isfinite(found.found_probe);
  if (!is_finite && !found.was_finite) return found;
  for (const uint32_t parameter : round.buckets()[bucket].layout.parameters) {
    if (is_finite || kernels::has_non_finite(brigade::detail::on_host(round.buckets().slot(parameter).view)))
      found.parameters.push_back(about(round.setup().parameters[parameter], {}, {}));
  }
  return found;
}

bool HookCheck::accepts(const Round& round, uint32_t bucket) {
  if (!round.setup().hook || round.is_captured()) return true;
  const HookResult found = result_of(round, bucket);
  if (found.norm > 0 && std::isfinite(found.found_probe)) probes_[bucket] = found.found_probe / found.norm;
  std::optional<Verdict> verdict = hook_result(found, round.moment());
  if (!verdict) {
    undecided_.push_back(bucket);
    return true;
  }
  if (verdict->cause.kind == CauseKind::Overflow && NormMeter::reading_of(round.buckets()[bucket].payload).scaled) {
    // The scaler skips the step on every rank, and lowers its scale.
    verdict->severity = Severity::Note;
    log_->advisories.add("hook_result overflow", std::move(*verdict));
    return true;
  }
  wrong_.push_back(std::move(*verdict));
  return false;
}

void HookCheck::keep_probes(const Round& round) {
  // A hook that sends nothing leaves gradients local on purpose.
  const bool may_differ = !round.setup().hook || round.setup().hook->is_approximate() || !round.traffic().is_sent;
  log_->hook_probes = may_differ || round.traffic().by_hook == 0 ? std::vector<double>() : probes_;
}

std::exception_ptr HookCheck::on_error(const Round& round, const TracedBackward*, const std::string&) {
  keep_probes(round);
  if (wrong_.empty() || round.outcome().failed > 0) return nullptr;
  // Judges the buckets whose numbers alone were inconclusive.
  for (const uint32_t bucket : std::exchange(undecided_, {})) {
    if (std::optional<Verdict> verdict = hook_result(result_of(round, bucket), round.moment(), true))
      wrong_.push_back(std::move(*verdict));
  }
  const ProcessGroup& group = *round.setup().group;
  const std::string message = in_words(wrong_) + group.names().legend(group.size());
  return std::make_exception_ptr(ReductionError(message, wrong_, round.where()));
}

}  // namespace brigade::dist
