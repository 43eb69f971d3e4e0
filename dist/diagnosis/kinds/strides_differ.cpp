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
  verdict.cause.text = fmt::format("its strides are {}, those of its gradient in the bucket {}",
                                   to_string(parameter.tensor.strides()), to_string(contiguous_strides(sizes)));
  verdict.advice = "make the parameter contiguous before wrapping";
  set_message(verdict, fmt::format("Gradient rearranged in each backward: `{}` {}, of the wrapper made at {}",
                                   parameter.name, to_string(sizes), to_string(moment.where)));
  return verdict;
}

}  // namespace brigade::dist
