// needless_retain_graph: a backward kept its graph, but no other backward went through it.
//
// Severity: warning
// When: before `step()`
// Causes: `wasteful`
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

namespace brigade::dist {

Verdict needless_retain_graph(SourceLocation backward, size_t bytes, size_t nodes, SourceLocation step_at) {
  Verdict verdict = new_verdict("needless_retain_graph", Severity::Warning, CauseKind::Wasteful, backward);
  verdict.cause.text =
      fmt::format("no other backward came through it before it was freed, as the step at {} found", to_string(step_at));
  verdict.advice = "leave retain_graph out";
  set_message(verdict, fmt::format("Graph kept for nothing: {} of results in {} operations, by retain_graph in the "
                                   "backward at {}",
                                   bytes_in_words(static_cast<int64_t>(bytes)), nodes, to_string(backward)));
  return verdict;
}

}  // namespace brigade::dist
