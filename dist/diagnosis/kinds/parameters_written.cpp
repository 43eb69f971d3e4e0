// parameters_written: a parameter was written outside the optimizer, and is not alike on all ranks since.
//
// Severity: error
// When: before `step()`
// Causes: `values_differ`: a checkpoint that one rank has loaded, averages that one rank has swapped in
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace brigade::dist {

std::optional<Verdict> parameters_written(std::span<const StepOnRank> steps, std::span<const GradientsApart> apart) {
  Verdict verdict;
  verdict.kind = "parameters_written";
  verdict.cause.kind = CauseKind::ValuesDiffer;
  std::set<std::string> named;
  std::set<int> writers;
  // Writes of ranks that hold what most ranks hold were in vain, if there are others.
  for (const bool odd_only : {true, false}) {
    for (size_t r = 0; r < steps.size(); ++r) {
      const int rank = static_cast<int>(r);
      for (const StepOnRank::Edit& write : steps[r].writes) {
        const GradientsApart* const differs = find(apart, write.parameter);
        if (!differs) continue;
        const bool odd = std::find(differs->odd.begin(), differs->odd.end(), rank) != differs->odd.end();
        if (odd_only && !odd) continue;
        if (writers.empty()) {
          verdict.cause.op = write.op;
          verdict.cause.place = write.where;
          verdict.cause.module = module_of(write.parameter);
        }
        writers.insert(rank);
        if (named.insert(write.parameter).second) verdict.parameters.push_back(about(differs->parameter, {}, {}));
      }
    }
    if (!writers.empty()) break;
  }
  if (writers.empty()) return std::nullopt;
  verdict.ranks.assign(writers.begin(), writers.end());
  for (ParameterVerdict& parameter : verdict.parameters)
    parameter.missing_ranks = verdict.ranks;
  verdict.cause.text = fmt::format(
      "{} at {} wrote to {} outside the optimizer on {}, and the ranks hold other values since", verdict.cause.op,
      to_string(verdict.cause.place), verdict.parameters.front().name, ranks_in_words(verdict.ranks));
  verdict.advice =
      "write the same on every rank (load the checkpoint on all, or broadcast from the one that has loaded it), and swap "
      "averages back before training goes on";
  return verdict;
}

}  // namespace brigade::dist
