// parameters_written: a parameter was written outside the optimizer and differs between ranks since then.
//
// Severity: error
// When: before `step()`; weights that no optimizer holds: in the next reduced backward
// Causes: `values_differ`: a checkpoint that only one rank loaded, averages that only one rank swapped in
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace brigade::dist {

namespace {

// "copy_ at a.cpp:5" or, if the last writes of the ranks are at different lines, "copy_ at a.cpp:5 (rank 0), add_ at
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

// The ranks that wrote to the parameter; with `odd_only`, only those whose values differ from most ranks'.
std::set<int> writers_of(std::span<const StepOnRank> steps, const GradientsApart& differs, bool odd_only) {
  std::set<int> writers;
  for (size_t r = 0; r < steps.size(); ++r) {
    const int rank = static_cast<int>(r);
    if (odd_only && std::ranges::find(differs.odd, rank) == differs.odd.end()) continue;
    if (std::ranges::find(steps[r].writes, differs.parameter.name, &StepOnRank::Edit::parameter) !=
        steps[r].writes.end())
      writers.insert(rank);
  }
  return writers;
}

// The first write to the parameter on the lowest of these ranks.
const StepOnRank::Edit& first_write(std::span<const StepOnRank> steps, const std::set<int>& writers,
                                    const std::string& parameter) {
  const StepOnRank& step = steps[static_cast<size_t>(*writers.begin())];
  return *std::ranges::find(step.writes, parameter, &StepOnRank::Edit::parameter);
}

Verdict written(std::span<const StepOnRank> steps, const std::set<int>& writers, const std::string& parameter,
                const std::string& lines) {
  Verdict verdict = new_verdict("parameters_written", Severity::Error, CauseKind::ValuesDiffer);
  verdict.what = "Parameters differ between the ranks";
  verdict.ranks.assign(writers.begin(), writers.end());
  const StepOnRank::Edit& first = first_write(steps, writers, parameter);
  verdict.cause.op = first.op;
  verdict.cause.place = first.where;
  verdict.cause.module = module_of(parameter);
  verdict.cause.text = lines + " changed it outside the optimizer";
  verdict.advice = "write the same on every rank (checkpoints, averages, random values)";
  return verdict;
}

}  // namespace

std::vector<Verdict> parameters_written(std::span<const StepOnRank> steps, std::span<const GradientsApart> apart) {
  std::vector<Verdict> verdicts;
  std::vector<std::string> lines_of;  // by verdict
  // Writes on ranks that hold the majority's values had no effect: they are blamed only if there are no others.
  for (const bool odd_only : {true, false}) {
    for (const GradientsApart& differs : apart) {
      const std::set<int> writers = writers_of(steps, differs, odd_only);
      if (writers.empty()) continue;
      const std::string& name = differs.parameter.name;
      const std::string lines = writes_in_words(steps, writers, name);
      const std::vector<int> ranks(writers.begin(), writers.end());
      size_t v = 0;
      while (v < verdicts.size() && (lines_of[v] != lines || verdicts[v].ranks != ranks))
        ++v;
      if (v == verdicts.size()) {
        verdicts.push_back(written(steps, writers, name, lines));
        lines_of.push_back(lines);
      }
      verdicts[v].parameters.push_back(about(differs.parameter, {}, ranks));
    }
    if (!verdicts.empty()) break;
  }
  return verdicts;
}

}  // namespace brigade::dist
