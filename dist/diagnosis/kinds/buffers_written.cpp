// buffers_written: a buffer that forward reads was replaced on some ranks only, and each rank keeps its own.
//
// Severity: warning
// When: before `step()`, with `broadcast_buffers` off
// Causes: `values_differ`: statistics or a scale that only some ranks loaded
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

namespace brigade::dist {

std::vector<Verdict> buffers_written(std::span<const StepOnRank> steps, std::span<const GradientsApart> apart) {
  std::vector<Verdict> verdicts;
  for (const GradientsApart& differs : apart) {
    Verdict verdict;
    verdict.kind = "buffers_written";
    verdict.severity = Severity::Warning;
    verdict.cause.kind = CauseKind::ValuesDiffer;
    verdict.cause.module = module_of(differs.parameter.name);
    for (size_t r = 0; r < steps.size(); ++r) {
      for (const StepOnRank::Edit& write : steps[r].buffers) {
        if (write.parameter != differs.parameter.name) continue;
        if (verdict.ranks.empty()) {
          verdict.cause.op = write.op;
          verdict.cause.place = write.where;
        }
        verdict.ranks.push_back(static_cast<int>(r));
      }
    }
    if (verdict.ranks.empty()) continue;
    const Tensor& buffer = differs.parameter.tensor;
    verdict.parameters.push_back(
        {differs.parameter.name, buffer.defined() ? static_cast<int64_t>(buffer.nbytes()) : 0, {}, verdict.ranks});
    verdict.cause.text = fmt::format(
        "{} at {} replaced the buffer `{}`, which forward reads, on {} only; the ranks hold other values since, and "
        "with broadcast_buffers off nothing makes them alike again",
        verdict.cause.op, to_string(verdict.cause.place), differs.parameter.name, ranks_in_words(verdict.ranks));
    verdict.message = verdict.cause.text;
    verdict.advice =
        "write the same on every rank, or wrap with broadcast_buffers; where each rank is to have its own, name the "
        "buffer in parameters_and_buffers_to_ignore";
    verdicts.push_back(std::move(verdict));
  }
  return verdicts;
}

}  // namespace brigade::dist
