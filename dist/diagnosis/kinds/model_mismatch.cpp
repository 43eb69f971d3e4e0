// model_mismatch: the ranks wrap different models.
//
// Severity: error
// When: construction
// Causes: `model_differs`
#include <brigade/dist/diagnosis/kinds.h>
#include <brigade/dist/errors/majority.h>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

namespace brigade::dist {
namespace {

// "parameter `a.weight` float32 [4, 4]" gives a.weight.
std::string name_in(const std::string& line) {
  const size_t begin = line.find('`');
  const size_t end = line.rfind('`');
  return begin == std::string::npos || end <= begin ? "" : line.substr(begin + 1, end - begin - 1);
}

std::set<std::string> names_of(const std::vector<std::string>& list) {
  std::set<std::string> names;
  for (const std::string& line : list)
    names.insert(name_in(line));
  return names;
}

constexpr std::string_view kFrozen = " frozen";  // ends the line of such a parameter
std::vector<std::string> without_frozen(std::vector<std::string> list) {
  for (std::string& line : list)
    if (line.ends_with(kFrozen)) line.resize(line.size() - kFrozen.size());
  return list;
}

}  // namespace

std::optional<Verdict> frozen_on_some_ranks(std::span<const std::vector<std::string>> lists,
                                            std::span<const std::vector<std::string>> set_at, SourceLocation where) {
  const std::vector<std::string> usual = without_frozen(lists.front());
  if (!std::ranges::all_of(lists, [&](const auto& list) { return without_frozen(list) == usual; })) return std::nullopt;
  Verdict verdict = new_verdict("model_mismatch", Severity::Error, CauseKind::ModelDiffers, where);
  verdict.ranks = outvoted(odd_ranks(lists), lists.size());
  for (size_t i = 0; i < usual.size(); ++i) {
    std::vector<int> trained, frozen;
    for (size_t r = 0; r < lists.size(); ++r)
      (lists[r][i].ends_with(kFrozen) ? frozen : trained).push_back(static_cast<int>(r));
    if (trained.empty() || frozen.empty()) continue;
    if (verdict.parameters.empty()) {
      const auto on = [&](const std::vector<int>& ranks) {
        const std::string& line = set_at[static_cast<size_t>(ranks.front())][i];
        return ranks_in_words(ranks) + (line.empty() ? "" : fmt::format(" (set at {})", line));
      };
      verdict.cause.text =
          fmt::format("`{}` is trained on {} and frozen on {}", name_in(usual[i]), on(trained), on(frozen));
    }
    verdict.parameters.push_back({name_in(usual[i]), 0, trained, frozen});
  }
  if (verdict.parameters.size() > 1) verdict.cause.text += fmt::format(", and {} more", verdict.parameters.size() - 1);
  verdict.advice = "freeze and unfreeze the same parameters on every rank (decide by a value that all ranks share)";
  return verdict;
}

Verdict model_mismatch(std::span<const std::vector<std::string>> lists, size_t entry, SourceLocation where) {
  Verdict verdict = new_verdict("model_mismatch", Severity::Error, CauseKind::ModelDiffers, where);
  verdict.advice = "build the same model on every rank: registration order, shapes, dtypes";
  const std::vector<int> odd_ones = odd_ranks(lists);
  const size_t usual = usual_rank(lists);
  const size_t odd = odd_ones.empty() ? usual : static_cast<size_t>(odd_ones.front());
  const bool most_agree = 2 * odd_ones.size() < lists.size();
  if (most_agree) verdict.ranks = odd_ones;  // else no rank is more suspect than another
  std::vector<std::string> each;
  std::set<std::string> there;
  std::vector<int> having;
  for (size_t r = 0; r < lists.size(); ++r) {
    each.push_back(entry < lists[r].size() ? "has " + lists[r][entry] : "has no more");
    if (entry >= lists[r].size()) continue;
    there.insert(lists[r][entry]);
    having.push_back(static_cast<int>(r));
  }
  const bool is_extra = there.size() == 1;
  verdict.cause.text = is_extra ? fmt::format("only {} {} {}", ranks_in_words(having),
                                              having.size() == 1 ? "has" : "have", *there.begin())
                                : by_rank_in_words(each);
  // The names that only one of the two ranks has; if there are none, those at the first entry that differs.
  std::set<std::string> named;
  const std::set<std::string> a = names_of(lists[usual]);
  const std::set<std::string> b = names_of(lists[odd]);
  std::set_symmetric_difference(a.begin(), a.end(), b.begin(), b.end(), std::inserter(named, named.end()));
  if (named.empty()) {
    for (const auto& list : lists)
      named.insert(name_in(list[entry]));
  } else if (!is_extra || named.size() > 1) {
    const std::vector<std::string> names(named.begin(), named.end());
    verdict.cause.text += fmt::format("; {} on {}: {}", a.size() > b.size() ? "missing" : "only",
                                      ranks_in_words(odd_ones), first_of(names, 4, ", "));
  }
  for (const std::string& name : named)
    verdict.parameters.push_back({name, 0, {}, odd_ones});
  return verdict;
}

Verdict wrappers_in_other_order(const OtherOrder& found, SourceLocation where) {
  Verdict verdict = new_verdict("model_mismatch", Severity::Error, CauseKind::ModelDiffers, where);
  verdict.ranks = {found.rank};
  verdict.cause.text = "the ranks wrap modules of one class in another order, and would mix their gradients";
  verdict.advice = "wrap the modules in the same order on every rank";
  set_message(verdict, fmt::format("Rank {} makes at {}, as {}, what rank {} made as {}", found.rank, found.line,
                                   found.title, found.other, found.others_title));
  return verdict;
}

}  // namespace brigade::dist
