// Merges equal verdicts of several ranks into one that lists all of these ranks.
#include <brigade/dist/diagnosis/merge.h>

#include <algorithm>

namespace brigade::dist {

namespace {

void join(std::vector<int>& into, const std::vector<int>& ranks) {
  into.insert(into.end(), ranks.begin(), ranks.end());
  std::sort(into.begin(), into.end());
  into.erase(std::unique(into.begin(), into.end()), into.end());
}

}  // namespace

std::vector<Verdict> merge(std::span<const std::vector<Verdict>> by_rank) {
  std::vector<Verdict> merged;
  for (const std::vector<Verdict>& verdicts : by_rank) {
    for (const Verdict& verdict : verdicts) {
      const auto same = std::find_if(merged.begin(), merged.end(), [&](const Verdict& known) {
        return known.kind == verdict.kind && known.cause.same_as(verdict.cause) &&
               known.parameters.size() == verdict.parameters.size() &&
               std::equal(known.parameters.begin(), known.parameters.end(), verdict.parameters.begin(),
                          [](const auto& a, const auto& b) { return a.name == b.name; });
      });
      if (same == merged.end()) {
        merged.push_back(verdict);
        continue;
      }
      join(same->ranks, verdict.ranks);
      for (size_t i = 0; i < verdict.parameters.size(); ++i) {
        join(same->parameters[i].ready_ranks, verdict.parameters[i].ready_ranks);
        join(same->parameters[i].missing_ranks, verdict.parameters[i].missing_ranks);
      }
    }
  }
  return merged;
}

}  // namespace brigade::dist
