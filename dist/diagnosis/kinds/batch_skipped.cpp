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
  Verdict verdict = new_verdict("batch_skipped", Severity::Warning, CauseKind::Exception, failed.where);
  verdict.ranks = {rank};
  verdict.cause.text = fmt::format(
      "its forward at {} threw \"{}\", which the program caught; from here on, gradients of different batches are averaged",
      to_string(failed.where), failed.error);
  verdict.advice =
      "let all ranks skip together (all_reduce whether one has failed, before backward), run the same batch again, or let "
      "the exception end the job";
  set_message(verdict, fmt::format("Rank {} skipped a batch and {} did not, before the step at {}", rank,
                                   ranks_in_words(behind), to_string(threw->where)));
  return verdict;
}

}  // namespace brigade::dist
