// rank_failed: a rank's backward threw.
//
// Severity: error
// When: end of backward
// Causes: `exception`: a rank's backward threw
#include <brigade/dist/diagnosis/report.h>

#include <fmt/format.h>

namespace brigade::dist {
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

}  // namespace brigade::dist
