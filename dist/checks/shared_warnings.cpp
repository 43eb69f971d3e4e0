// Exchanges warning texts once; equal texts become one warning.
#include <brigade/dist/checks/step_habits.h>

#include <brigade/core/warning.h>
#include <brigade/dist/diagnosis/advisories.h>
#include <brigade/dist/errors/json.h>
#include <brigade/dist/groups/process_group.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace brigade::dist {
namespace {

// Message and advice.
using Texts = std::vector<std::pair<std::string, std::string>>;

struct Shared {
  std::pair<std::string, std::string> texts;
  std::vector<int> ranks;
};

std::vector<Shared> merged(const std::vector<std::string>& by_rank) {
  std::vector<Shared> all;
  for (size_t r = 0; r < by_rank.size(); ++r) {
    for (const auto& texts : decoded<Texts>(by_rank[r])) {
      auto known = std::find_if(all.begin(), all.end(), [&](const Shared& each) { return each.texts == texts; });
      if (known == all.end()) known = all.insert(all.end(), {texts, {}});
      if (known->ranks.empty() || known->ranks.back() != static_cast<int>(r))
        known->ranks.push_back(static_cast<int>(r));
    }
  }
  return all;
}

}  // namespace

void share_warnings(Advisories& advisories, ProcessGroup& group, SourceLocation where) {
  Texts own;
  for (const std::vector<Warning>& warnings : {advisories.take_undelivered(), take_held_warnings()}) {
    for (const Warning& warning : warnings)
      own.emplace_back(warning.message, warning.advice);
  }
  const std::vector<std::string> by_rank = group.all_gather_text(to_text(own), "warnings", where);
  if (group.rank() != 0) return;
  for (const Shared& shared : merged(by_rank)) {
    const auto& [message, advice] = shared.texts;
    if (has_told(message)) continue;
    tell({ranks_in_words(shared.ranks) + ": " + message, advice});
  }
}

}  // namespace brigade::dist
