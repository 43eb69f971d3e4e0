// unused_parameters: a parameter was not ready on every rank.
//
// Severity: error
// When: end of backward, strict mode
// Causes: `module_not_called`, `not_used`, `output_dropped`, `detached`, `no_grad`,
//   `not_differentiable`, `read_as_number`, `collective`, `gradient_not_returned`,
//   `other_thread`, `not_recorded`, `frozen`, `replaced`, `loss_not_connected`, `unknown`
#include <brigade/dist/diagnosis/report.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace brigade::dist {

static std::string advice_on(const Cause& cause, const RankReport& report, bool some_ranks_only, bool by_fabric) {
  if (cause.kind == CauseKind::Detached && report.shares_optimizer && !by_fabric)
    return "remove the detach(), or train it by a loss of the tensor before it";
  if (cause.kind == CauseKind::OutputDropped && report.keeps_graph)
    return "call backward() once, on the sum of the losses: this one keeps its graph for another";
  if (cause.kind == CauseKind::NotUsed && !cause.op.empty())
    return fmt::format("make random choices before the {}: its segment has to run twice alike", cause.op);
  return advice_for(cause.kind, some_ranks_only, by_fabric);
}

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
    Verdict verdict = new_verdict("unused_parameters", Severity::Error, cause.kind);
    verdict.iteration = reports.front().round;
    verdict.ranks = parameter.missing_ranks;
    verdict.advice = advice_on(cause, reports[static_cast<size_t>(parameter.missing_ranks.front())],
                               !parameter.ready_ranks.empty(), context.by_fabric);
    verdict.cause = std::move(cause);
    verdict.parameters.push_back(std::move(parameter));
    verdicts.push_back(std::move(verdict));
  }
  for (Verdict& verdict : verdicts) {
    const std::string& first = verdict.parameters.front().name;
    if (of_first_only.contains(first) && !verdict.cause.note.empty())
      verdict.cause.note = fmt::format("of {}: {}", first, verdict.cause.note);
  }
  // What was not called explains results that others dropped.
  std::ranges::stable_partition(verdicts,
                                [](const Verdict& verdict) { return verdict.cause.kind != CauseKind::OutputDropped; });
  return verdicts;
}

}  // namespace brigade::dist
