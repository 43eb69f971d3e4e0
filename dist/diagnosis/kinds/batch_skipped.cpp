// batch_skipped: a forward threw on one rank, which went on with its next batch, while the others did not.
//
// Severity: warning
// When: before `step()`
// Causes: `exception`
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

#include <algorithm>

namespace brigade::dist {

// Ranks that agree to leave out a batch have begun as many forwards as the others.
std::optional<Verdict> batch_skipped(std::span<const StepOnRank> steps) {
  const auto threw = std::ranges::find_if(steps, [](const StepOnRank& step) { return !step.forwards.error.empty(); });
  if (threw == steps.end()) return std::nullopt;
  const StepOnRank::Forwards& failed = threw->forwards;
  const int rank = static_cast<int>(threw - steps.begin());
  std::vector<int> behind;
  for (size_t r = 0; r < steps.size(); ++r)
    if (steps[r].forwards.begun < failed.begun) behind.push_back(static_cast<int>(r));
  if (behind.empty()) return std::nullopt;
  Verdict verdict;
  verdict.kind = "batch_skipped";
  verdict.severity = Severity::Warning;
  verdict.ranks = {rank};
  verdict.cause.kind = CauseKind::Exception;
  verdict.cause.place = failed.where;
  verdict.cause.text = fmt::format(
      "rank {} skipped a batch: its forward at {} threw \"{}\", which the program caught; {} did not skip theirs, so from "
      "the step at {} on the gradients of different batches are averaged, and rank {} ends first",
      rank, to_string(failed.where), failed.error, ranks_in_words(behind), to_string(threw->where), rank);
  verdict.message = verdict.cause.text;
  verdict.advice =
      "let all ranks skip together (all_reduce whether one has failed, before backward), run the same batch again, or let "
      "the exception end the job";
  return verdict;
}

}  // namespace brigade::dist
