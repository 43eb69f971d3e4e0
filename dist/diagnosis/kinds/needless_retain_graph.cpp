// needless_retain_graph: a backward kept its graph, but no other backward went through it.
//
// Severity: warning
// When: before `step()`
// Causes: `wasteful`
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

namespace brigade::dist {

Verdict needless_retain_graph(SourceLocation backward, size_t bytes, size_t nodes, SourceLocation step_at) {
  Verdict verdict;
  verdict.kind = "needless_retain_graph";
  verdict.severity = Severity::Warning;
  verdict.cause.kind = CauseKind::Wasteful;
  verdict.cause.place = backward;
  verdict.cause.text = fmt::format(
      "the backward at {} kept its graph (retain_graph): {} of results in {} operations, and no other backward came "
      "through it before it was freed, as the step at {} found",
      to_string(backward), bytes_in_words(static_cast<int64_t>(bytes)), nodes, to_string(step_at));
  verdict.message = verdict.cause.text;
  verdict.advice = "leave retain_graph out: graphs that share nothing (one behind a detach()) are freed one by one";
  return verdict;
}

}  // namespace brigade::dist
