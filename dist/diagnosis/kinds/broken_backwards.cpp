// The kinds of verdicts on backwards whose gradients cannot be averaged.
#include <brigade/dist/diagnosis/report.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace brigade::dist {

// backward_mismatch: the ranks are in different backwards.
//
// Severity: error
// When: end of backward
// Causes: `steps_differ`: ranks are in different backwards, or do not agree which wrapper averages a shared layer

namespace {

// The first parameter whose gradient another wrapper averages on some ranks only, if all are in one backward. Otherwise
// the number of parameters.
size_t disputed(std::span<const RankReport> reports) {
  const std::vector<bool>& first = reports.front().elsewhere;
  size_t found = first.size();
  for (const RankReport& report : reports) {
    if (report.round != reports.front().round) return first.size();
    const auto differ = std::ranges::mismatch(first, report.elsewhere).in1;
    found = std::min(found, static_cast<size_t>(differ - first.begin()));
  }
  return found;
}

}  // namespace

Verdict backward_mismatch(std::span<const RankReport> reports, std::span<const NamedParameter> parameters) {
  const RankReport& first = reports.front();
  const size_t shared = disputed(reports);
  const bool is_disputed = shared < first.elsewhere.size();
  Verdict verdict = new_verdict("backward_mismatch", Severity::Error, CauseKind::StepsDiffer);
  verdict.iteration = first.round;
  std::vector<std::string> each;
  for (const RankReport& report : reports) {
    const bool differs =
        is_disputed ? report.elsewhere[shared] != first.elsewhere[shared] : report.round != first.round;
    if (differs) verdict.ranks.push_back(report.rank);
    const std::string what = !is_disputed               ? fmt::format("in backward {}", report.round)
                             : report.elsewhere[shared] ? "another one"
                                                        : "this one";
    each.push_back(fmt::format("{} (at {})", what, to_string(report.backward)));
  }
  verdict.cause.text = is_disputed ? "the losses of the ranks reach different wrappers that share it"
                                   : "a rank left out a backward, or ran one more than the others";
  verdict.advice = is_disputed ? "call the wrappers, not the modules in them, and let the loss of each rank reach the "
                                 "same wrappers in every backward"
                               : "run the same number of backwards on every rank (as many batches, no skipped steps)";
  set_message(verdict, fmt::format("{}: {}",
                                   is_disputed ? "The ranks do not agree which wrapper averages the shared parameter " +
                                                     parameters[shared].name
                                               : "The ranks are not in the same backward",
                                   by_rank_in_words(each)));
  return verdict;
}

// rank_failed: a rank's backward threw.
//
// Severity: error
// When: end of backward
// Causes: `exception`: a rank's backward threw

namespace {

// Replaces newlines by spaces.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  return text;
}

}  // namespace

Verdict rank_failed(std::span<const RankReport> reports) {
  Verdict verdict = new_verdict("rank_failed", Severity::Error, CauseKind::Exception);
  verdict.iteration = reports.front().round;
  std::vector<std::string> failures;
  for (const RankReport& report : reports) {
    if (report.failure.empty()) continue;
    verdict.ranks.push_back(report.rank);
    if (!verdict.cause.place) verdict.cause.place = report.backward;
    failures.push_back(one_line(report.failure));
  }
  verdict.cause.text = first_of(failures, 4, "; ");
  verdict.advice = "repair that error; the other ranks only report it";
  const std::string at = verdict.cause.place ? " at " + to_string(verdict.cause.place) : "";
  const bool is_one = failures.size() == 1;
  set_message(verdict, fmt::format("Rank{} {} failed in {} backward{}", is_one ? "" : "s", list_of(verdict.ranks),
                                   is_one ? "its" : "their", at));
  return verdict;
}

// static_graph_changed: a backward used a different set of parameters than the first one.
//
// Severity: error
// When: end of backward, `static_graph`
// Causes: `graph_changed`
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
