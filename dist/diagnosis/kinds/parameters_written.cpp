// parameters_written: a parameter was written outside the optimizer, and is not alike on all ranks since.
//
// Severity: error
// When: before `step()`
// Causes: `values_differ`: a checkpoint that one rank has loaded, averages that one rank has swapped in
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace brigade::dist {

namespace {

// "copy_ at a.cpp:5", or, where ranks have written it last at different lines, "copy_ at a.cpp:5 (rank 0), add_ at
// a.cpp:9 (ranks 1 and 2)".
std::string writes_in_words(std::span<const StepOnRank> steps, const std::set<int>& writers,
                            const std::string& parameter) {
  std::vector<std::pair<std::string, std::vector<int>>> lines;
  for (const int rank : writers) {
    for (const StepOnRank::Edit& write : steps[static_cast<size_t>(rank)].writes) {
      if (write.parameter != parameter) continue;
      const std::string line = write.in_words();
      const auto known = std::ranges::find(lines, line, [](const auto& each) { return each.first; });
      if (known == lines.end()) {
        lines.push_back({line, {rank}});
      } else {
        known->second.push_back(rank);
      }
    }
  }
  if (lines.size() == 1) return lines.front().first;
  std::vector<std::string> parts;
  for (const auto& [line, ranks] : lines)
    parts.push_back(fmt::format("{} ({})", line, ranks_in_words(ranks)));
  return first_of(parts, 4, ", ");
}

}  // namespace

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
  verdict.cause.text = fmt::format("{} wrote to {} outside the optimizer on {}, and the ranks hold other values since",
                                   writes_in_words(steps, writers, verdict.parameters.front().name),
                                   verdict.parameters.front().name, ranks_in_words(verdict.ranks));
  verdict.advice =
      "write the same on every rank (load the checkpoint on all, broadcast from the one that has loaded it, draw from the "
      "same seed), and swap averages back before training goes on";
  return verdict;
}

}  // namespace brigade::dist
