// stale_buffer: a module has a buffer that its forward no longer reads.
//
// Severity: warning
// When: in forward
// Causes: `replaced`: its member was reassigned
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

namespace brigade::dist {

Verdict stale_buffer(const NamedParameter& buffer, const std::string& title, SourceLocation forward) {
  Verdict verdict;
  verdict.kind = "stale_buffer";
  verdict.severity = Severity::Warning;
  verdict.cause.kind = CauseKind::Replaced;
  verdict.cause.place = forward;
  verdict.cause.module = module_of(buffer.name);
  verdict.cause.text = fmt::format(
      "the buffer {} of {} is registered, and nobody reads it since the forward before the one at {}: the member that held "
      "it was assigned again, and what is broadcast, saved and moved to a device is the old tensor",
      buffer.name, title, to_string(forward));
  verdict.message = verdict.cause.text;
  verdict.advice = "write into the buffer under NoGradGuard (buffer.copy_(value)) in place of buffer = value";
  verdict.parameters.push_back(about(buffer, {}, {}));
  return verdict;
}

}  // namespace brigade::dist
