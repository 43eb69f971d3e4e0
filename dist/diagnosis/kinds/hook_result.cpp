// hook_result: a communication hook does not produce the mean of the ranks' gradients.
//
// Severity: error (`values_differ`: warning)
// When: end of backward, with a communication hook (`values_differ`: before `step()`)
// Causes: `wrong_scale`, `overflow`, `values_differ`: the ranks hold different results
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

#include <cmath>

namespace brigade::dist {
namespace {

enum class Finding : uint8_t { MayBeRight, Sum, SumOfParts, DividedTwice, Overflow };

// The number by which the sum over `ranks` was divided, if it is the size of equal parts of the ranks (the ranks of one
// host); else 0. `ratio`: the result divided by the mean.
int divided_by(double ratio, int ranks, double tolerance) {
  for (int part = 2; part < ranks; ++part) {
    const double expected = static_cast<double>(ranks) / part;
    if (ranks % part == 0 && std::abs(ratio - expected) < tolerance * expected) return part;
  }
  return 0;
}

// The smallest probe that counts, relative to the norm: smaller ones may be rounding errors, which are large with hooks
// that compress. If the hook is wrong in other buckets too, the second, lower limit applies.
constexpr double kTellingProbe = 0.01;
constexpr double kProbeBesideOthers = 1e-9;

Finding look_at(const HookResult& found, int ranks, bool is_wrong_elsewhere) {
  if (!std::isfinite(found.found_probe)) return found.was_finite ? Finding::Overflow : Finding::MayBeRight;
  const double least = (is_wrong_elsewhere ? kProbeBesideOthers : kTellingProbe) * found.norm;
  if (ranks == 1 || found.norm == 0 || std::abs(found.expected_probe) < least) return Finding::MayBeRight;
  const double tolerance = is_wrong_elsewhere ? 0.05 : 1e-3;
  const double ratio = found.found_probe / found.expected_probe;
  if (std::abs(ratio - ranks) < tolerance * ranks) return Finding::Sum;
  if (divided_by(ratio, ranks, 1e-3) != 0) return Finding::SumOfParts;
  return std::abs(ratio * ranks - 1) < tolerance ? Finding::DividedTwice : Finding::MayBeRight;
}

}  // namespace

std::optional<Verdict> hook_result(const HookResult& found, const Moment& moment, bool is_wrong_elsewhere) {
  const Finding finding = look_at(found, moment.ranks, is_wrong_elsewhere);
  if (finding == Finding::MayBeRight) return std::nullopt;
  Verdict verdict = verdict_at(moment, "hook_result", Severity::Error, CauseKind::WrongScale);
  verdict.cause.op = found.hook;
  verdict.ranks = moment.every_rank();
  if (finding == Finding::Overflow) {
    verdict.cause.kind = CauseKind::Overflow;
    verdict.cause.text = "the gradients were finite on every rank before it: its range was exceeded";
    verdict.advice = "use bf16_compress_hook (the range of float32), or scale the loss down";
  } else if (finding == Finding::Sum) {
    verdict.cause.text = fmt::format(
        "it gives {} x the mean of the ranks' gradients: a sum that was not divided by the world size", moment.ranks);
    verdict.advice = "use ReduceOp::Avg, or divide by the world size";
  } else if (finding == Finding::SumOfParts) {
    const int part = divided_by(found.found_probe / found.expected_probe, moment.ranks, 1e-3);
    verdict.cause.text =
        fmt::format("it gives {} x the mean of the ranks' gradients, like a sum over {} ranks that is divided by {}",
                    moment.ranks / part, moment.ranks, part);
    verdict.advice = "divide the sum by the number of all ranks, once";
  } else {
    verdict.cause.text =
        fmt::format("it gives 1/{} of the mean of the ranks' gradients: it was divided twice", moment.ranks);
    verdict.advice = "divide once: ReduceOp::Avg divides already";
  }
  verdict.parameters = found.parameters;
  for (ParameterVerdict& parameter : verdict.parameters)
    parameter.ready_ranks = verdict.ranks;
  set_message(verdict, fmt::format("Wrong result of hook `{}`: {}, on all ranks, in backward {} at {}", found.hook,
                                   found.bucket, moment.iteration, to_string(moment.where)));
  return verdict;
}

Verdict hook_results_differ(const std::string& hook, std::span<const GradientsApart> apart, const Place& backward) {
  Verdict verdict = new_verdict("hook_result", Severity::Warning, CauseKind::ValuesDiffer, backward);
  verdict.cause.op = hook;
  for (const GradientsApart& each : apart)
    verdict.parameters.push_back(about(each.parameter, {}, {}));
  verdict.ranks = apart.front().odd;
  verdict.cause.text =
      fmt::format("the communication hook `{}` leaves other values on the ranks, so their models part", hook);
  verdict.advice = "average every gradient of the bucket over all ranks of the group, on every rank alike";
  set_message(verdict, fmt::format("Gradients differ between the ranks: {}, after the backward at {}",
                                   names_in_words(verdict.parameters, 3), to_string(backward)));
  return verdict;
}

}  // namespace brigade::dist
