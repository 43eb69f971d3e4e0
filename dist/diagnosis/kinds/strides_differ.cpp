// strides_differ: a parameter's strides differ from those of its bucket slot, so each backward rearranges its gradient.
//
// Severity: note
// When: once
// Causes: `wasteful`
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

namespace brigade::dist {

Verdict strides_differ(const NamedParameter& parameter, const Moment& moment) {
  Verdict verdict = verdict_at(moment, "strides_differ", Severity::Note, CauseKind::Wasteful);
  verdict.ranks = moment.every_rank();
  verdict.parameters.push_back(about(parameter, {}, {}));
  const Shape& sizes = parameter.tensor.sizes();
  verdict.cause.text = fmt::format(
      "parameter `{}` {} has strides {}; its gradient lies in the bucket with strides {}, so each backward rearranges "
      "it",
      parameter.name, to_string(sizes), to_string(parameter.tensor.strides()), to_string(contiguous_strides(sizes)));
  verdict.message = verdict.cause.text;
  verdict.advice = "make the parameter contiguous before wrapping";
  return verdict;
}

}  // namespace brigade::dist
