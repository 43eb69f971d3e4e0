// unused_parameters: a parameter was not ready on every rank.
//
// Severity: error
// When: end of backward, strict mode
// Causes: `module_not_called`, `not_used`, `output_dropped`, `detached`, `no_grad`,
//   `not_differentiable`, `read_as_number`, `collective`, `gradient_not_returned`,
//   `other_thread`, `not_recorded`, `frozen`, `replaced`, `loss_not_connected`, `unknown`
#include <brigade/dist/diagnosis/report.h>

#include <fmt/format.h>

#include <set>

namespace brigade::dist {

namespace {

std::string parameters_in_words(const Verdict& verdict) {
  int64_t bytes = 0;
  for (const ParameterVerdict& parameter : verdict.parameters)
    bytes += parameter.bytes;
  return fmt::format("{} ({})", names_in_words(verdict.parameters), bytes_in_words(bytes));
}

// "b.weight (64 B): never ready on rank 1 (ready on rank 0); held up bucket 0"
std::string concerned_in_words(const Verdict& verdict, std::span<const NamedParameter> parameters,
                               const ErrorContext& context) {
  const ParameterVerdict& first = verdict.parameters.front();
  std::string concerned =
      fmt::format("{}: never ready on {}", parameters_in_words(verdict), ranks_in_words(first.missing_ranks));
  if (!first.ready_ranks.empty()) concerned += fmt::format(" (ready on {})", ranks_in_words(first.ready_ranks));
  std::set<uint32_t> buckets;
  for (uint32_t i = 0; i < parameters.size(); ++i) {
    for (const ParameterVerdict& each : verdict.parameters) {
      if (each.name == parameters[i].name) buckets.insert(context.buckets[i]);
    }
  }
  concerned +=
      fmt::format("; held up bucket{} {}", buckets.size() > 1 ? "s" : "", list_of({buckets.begin(), buckets.end()}));
  return concerned;
}

}  // namespace

std::vector<Verdict> unused_parameters(std::span<const RankReport> reports, std::span<const NamedParameter> parameters,
                                       const ErrorContext& context) {
  std::vector<Verdict> verdicts;
  std::set<std::string> of_first_only;  // first parameters whose notes do not apply to the others of the verdict
  for (uint32_t i = 0; i < parameters.size(); ++i) {
    ParameterVerdict parameter{parameters[i].name, static_cast<int64_t>(parameters[i].tensor.nbytes()), {}, {}};
    Cause cause;
    std::string elsewhere, called;
    for (const RankReport& report : reports) {
      if (report.ready[i]) {
        const auto call = report.called.find(i);
        if (parameter.ready_ranks.empty() && call != report.called.end())
          called = fmt::format("rank {} called it at {}", report.rank, to_string(call->second));
        parameter.ready_ranks.push_back(report.rank);
        continue;
      }
      parameter.missing_ranks.push_back(report.rank);
      const auto found = report.causes.find(i);
      if (found == report.causes.end()) continue;
      if (cause.text.empty()) {
        cause = found->second;
      } else if (!cause.same_as(found->second)) {
        elsewhere += fmt::format("; on rank {}: {}", report.rank, found->second.text);
      } else if (!found->second.note.empty() && found->second.note != cause.note) {
        elsewhere += fmt::format("; on rank {}: {}", report.rank, found->second.note);
      }
    }
    if (parameter.missing_ranks.empty() || !context.expected[i]) continue;
    if (cause.kind == CauseKind::ModuleNotCalled && !called.empty()) elsewhere = "; " + called + elsewhere;
    cause.note += cause.note.empty() && !elsewhere.empty() ? elsewhere.substr(2) : elsewhere;
    bool grouped = false;
    for (Verdict& verdict : verdicts) {
      if (!verdict.cause.same_as(cause) || verdict.parameters.front().missing_ranks != parameter.missing_ranks)
        continue;
      if (verdict.cause.note != cause.note) of_first_only.insert(verdict.parameters.front().name);
      verdict.parameters.push_back(parameter);
      grouped = true;
      break;
    }
    if (grouped) continue;
    Verdict verdict;
    verdict.kind = "unused_parameters";
    verdict.iteration = reports.front().round;
    verdict.ranks = parameter.missing_ranks;
    verdict.advice = advice_for(cause.kind, !parameter.ready_ranks.empty());
    // At the end of this backward it is unknown whether another one follows (docs/design.md).
    if (cause.kind == CauseKind::OutputDropped && context.report_at_once)
      verdict.advice += "; where another backward of the same step reaches it, wrap with report_at = NextForward";
    verdict.cause = std::move(cause);
    verdict.parameters.push_back(std::move(parameter));
    verdicts.push_back(std::move(verdict));
  }
  for (Verdict& verdict : verdicts) {
    const std::string& first = verdict.parameters.front().name;
    if (of_first_only.contains(first) && !verdict.cause.note.empty())
      verdict.cause.note = fmt::format("of {}: {}", first, verdict.cause.note);
    verdict.message = paragraph(verdict, concerned_in_words(verdict, parameters, context));
  }
  return verdicts;
}

}  // namespace brigade::dist
