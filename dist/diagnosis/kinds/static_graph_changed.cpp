// static_graph_changed: a backward used a different set of parameters than the first one.
//
// Severity: error
// When: end of backward, `static_graph`
// Causes: `graph_changed`
#include <brigade/dist/diagnosis/report.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace brigade::dist {

std::vector<Verdict> static_graph_changed(std::span<const RankReport> reports,
                                          std::span<const NamedParameter> parameters, SourceLocation where) {
  std::vector<Verdict> verdicts;
  for (uint32_t i = 0; i < parameters.size(); ++i) {
    std::vector<int> now_used;
    std::vector<int> now_unused;
    ParameterVerdict parameter{parameters[i].name, static_cast<int64_t>(parameters[i].tensor.nbytes()), {}, {}};
    for (const RankReport& report : reports) {
      (report.ready[i] ? parameter.ready_ranks : parameter.missing_ranks).push_back(report.rank);
      if (report.recorded.size() != parameters.size() || report.ready[i] == report.recorded[i]) continue;
      (report.ready[i] ? now_used : now_unused).push_back(report.rank);
    }
    if (now_used.empty() && now_unused.empty()) continue;
    Verdict verdict = new_verdict("static_graph_changed", Severity::Error, CauseKind::GraphChanged, where);
    verdict.iteration = reports.front().round;
    verdict.ranks = now_unused.empty() ? now_used : now_unused;
    verdict.parameters.push_back(std::move(parameter));
    verdict.cause.module = module_of(parameters[i].name);
    const RankReport& first = reports[static_cast<size_t>(verdict.ranks.front())];
    verdict.cause.text =
        fmt::format("{} in the first backward (at {}), {} in this one", now_unused.empty() ? "not used" : "used",
                    to_string(first.recorded_at), now_unused.empty() ? "used" : "not used");
    const auto cause = first.causes.find(i);
    if (cause != first.causes.end()) {
      verdict.cause.note = cause->second.text;
      verdict.cause.place = cause->second.place;
    }
    verdict.advice = advice_for(CauseKind::GraphChanged, false);
    const auto same = std::ranges::find_if(verdicts, [&](const Verdict& known) {
      return known.cause.same_as(verdict.cause) && known.cause.note == verdict.cause.note &&
             known.ranks == verdict.ranks;
    });
    if (same == verdicts.end()) {
      verdicts.push_back(std::move(verdict));
    } else {
      same->parameters.push_back(std::move(verdict.parameters.front()));
    }
  }
  return verdicts;
}

}  // namespace brigade::dist
