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
    Verdict verdict = new_verdict("buffers_written", Severity::Warning, CauseKind::ValuesDiffer);
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
    verdict.cause.text = verdict.cause.op + " replaced its values there, and broadcast_buffers is off";
    verdict.advice = "write the same on every rank, or wrap with broadcast_buffers = true";
    set_message(verdict,
                fmt::format("Buffers differ between the ranks: {}, replaced on {} only, at {}", differs.parameter.name,
                            ranks_in_words(verdict.ranks), to_string(verdict.cause.place)));
    verdicts.push_back(std::move(verdict));
  }
  return verdicts;
}

}  // namespace brigade::dist
