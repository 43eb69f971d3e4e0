// The kinds of verdicts on buffers that are replaced.
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

namespace brigade::dist {

// buffers_written: a buffer that forward reads was replaced on some ranks only, and each rank keeps its own.
//
// Severity: warning
// When: before `step()`, with `broadcast_buffers` off
// Causes: `values_differ`: statistics or a scale that only some ranks loaded
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

// stale_buffer: a module has a buffer that its forward no longer reads.
//
// Severity: warning
// When: in forward
// Causes: `replaced`: its member was reassigned
Verdict stale_buffer(const NamedParameter& buffer, const std::string& title, SourceLocation forward) {
  Verdict verdict = new_verdict("stale_buffer", Severity::Warning, CauseKind::Replaced, forward);
  verdict.cause.module = module_of(buffer.name);
  verdict.cause.text = "the member that held it was assigned again; the old tensor is broadcast, saved and moved";
  verdict.advice = "write into it under NoGradGuard (buffer.copy_(value)) in place of buffer = value";
  set_message(verdict, fmt::format("Buffer no longer read: {} of {}, since the forward before the one at {}",
                                   buffer.name, title, to_string(forward)));
  verdict.parameters.push_back(about(buffer, {}, {}));
  return verdict;
}

}  // namespace brigade::dist
