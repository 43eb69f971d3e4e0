// stale_buffer: a module has a buffer that its forward no longer reads.
//
// Severity: warning
// When: in forward
// Causes: `replaced`: its member was reassigned
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

namespace brigade::dist {

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
