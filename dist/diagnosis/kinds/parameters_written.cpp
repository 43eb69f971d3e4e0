// parameters_written: a parameter was written outside the optimizer and differs between ranks since then.
//
// Severity: error
// When: before `step()`; weights that no optimizer holds: in the next reduced backward
// Causes: `values_differ`: a checkpoint that only one rank loaded, averages that only one rank swapped in
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace brigade::dist {
namespace {

using Edits = std::vector<StepOnRank::Edit>;

bool contains(const Edits& edits, const StepOnRank::Edit& edit) {
  return std::ranges::any_of(edits, [&](const auto& each) { return each.op == edit.op && each.where == edit.where; });
}

// By rank, the writes that explain the difference: of each rank whose values are unusual, or of each where none are
// usual, those that some of the others have not made, else the latest. A write that all have made (an average swapped in
// and back) may have come after the one that matters.
std::map<int, Edits> telling_writes(std::span<const StepOnRank> steps, const std::string& parameter,
                                    const std::vector<int>& odd) {
  std::vector<Edits> all;
  for (const StepOnRank& step : steps) {
    all.emplace_back();
    std::ranges::copy_if(step.writes, std::back_inserter(all.back()),
                         [&](const auto& each) { return each.parameter == parameter; });
  }
  const auto is_odd = [&](size_t rank) { return std::ranges::find(odd, static_cast<int>(rank)) != odd.end(); };
  std::map<int, Edits> telling, latest;
  for (size_t r = 0; r < all.size(); ++r) {
    if (all[r].empty() || (!odd.empty() && !is_odd(r))) continue;
    latest[static_cast<int>(r)] = {all[r].back()};
    for (const StepOnRank::Edit& edit : all[r]) {
      for (size_t other = 0; other < all.size(); ++other) {
        if (other == r || is_odd(other) || contains(all[other], edit)) continue;
        telling[static_cast<int>(r)].push_back(edit);
        break;
      }
    }
  }
  if (odd.empty() && !telling.empty()) return telling;
  telling.merge(latest);
  return telling;
}

// "copy_ at a.cpp:5" or, if the ranks wrote at different lines, "copy_ at a.cpp:5 (rank 0), add_ at a.cpp:9 (ranks 1 and
// 2)".
std::string in_words(const std::map<int, Edits>& writes) {
  std::vector<std::pair<std::string, std::vector<int>>> lines;
  for (const auto& [rank, edits] : writes) {
    std::vector<std::string> words;
    for (const StepOnRank::Edit& edit : edits)
      words.push_back(edit.in_words());
    const std::string line = first_of(words, 4, ", ");
    const auto known = std::ranges::find(lines, line, [](const auto& each) { return each.first; });
    if (known == lines.end()) {
      lines.push_back({line, {rank}});
    } else {
      known->second.push_back(rank);
    }
  }
  if (lines.size() == 1) return lines.front().first;
  std::vector<std::string> parts;
  for (const auto& [line, ranks] : lines)
    parts.push_back(fmt::format("{} ({})", line, ranks_in_words(ranks)));
  return first_of(parts, 4, ", ");
}

Verdict written(const std::map<int, Edits>& writes, const std::string& parameter, const std::string& lines) {
  Verdict verdict = new_verdict("parameters_written", Severity::Error, CauseKind::ValuesDiffer);
  verdict.what = "Parameters differ between the ranks";
  const StepOnRank::Edit& edit = writes.begin()->second.back();
  verdict.cause.op = edit.op;
  verdict.cause.place = edit.where;
  verdict.cause.module = module_of(parameter);
  verdict.cause.text = lines + " wrote outside the optimizer";
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
      const std::string& name = differs.parameter.name;
      const std::map<int, Edits> writes = telling_writes(steps, name, odd_only ? differs.odd : std::vector<int>());
      if (writes.empty()) continue;
      const std::string lines = in_words(writes);
      std::vector<int> ranks;
      for (const auto& [rank, edits] : writes)
        ranks.push_back(rank);
      size_t v = 0;
      while (v < verdicts.size() && (lines_of[v] != lines || verdicts[v].ranks != ranks))
        ++v;
      if (v == verdicts.size()) {
        verdicts.push_back(written(writes, name, lines));
        verdicts.back().ranks = ranks;
        lines_of.push_back(lines);
      }
      verdicts[v].parameters.push_back(about(differs.parameter, {}, ranks));
    }
    if (!verdicts.empty()) break;
  }
  return verdicts;
}

}  // namespace brigade::dist
