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
  Verdict verdict;
  verdict.kind = "rank_failed";
  verdict.cause.kind = CauseKind::Exception;
  verdict.iteration = reports.front().round;
  for (const RankReport& report : reports) {
    if (report.failure.empty()) continue;
    verdict.ranks.push_back(report.rank);
    if (!verdict.cause.place) verdict.cause.place = report.backward;
    verdict.message +=
        fmt::format("{}rank {} failed in its backward{}: {}", verdict.message.empty() ? "" : "; ", report.rank,
                    report.backward ? " at " + to_string(report.backward) : "", one_line(report.failure));
  }
  verdict.cause.text = verdict.message;
  verdict.advice = "repair the error on the rank that is named; the other ranks only report it";
  return verdict;
}

}  // namespace brigade::dist
