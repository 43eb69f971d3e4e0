#include "fake_backward.h"

#include <doctest/doctest.h>

namespace brigade::test {

Advised advise(const std::string& name, int ranks, const std::vector<Change>& backwards) {
  std::vector<Advised> by_rank(static_cast<size_t>(ranks));
  dist::run_threads(ranks, [&](const dist::ProcessGroupPtr& group) {
    const std::unique_ptr<dist::Advice> advice = dist::all_advice().at(name)();
    Advised& mine = by_rank[static_cast<size_t>(group->rank())];
    for (size_t i = 0; i < backwards.size(); ++i) {
      FakeBackward backward(group);
      backward.at.iteration = i + 1;
      backwards[i](group->rank(), backward);
      if (dist::Statistic* const statistic = advice->statistic()) {
        statistic->begin(backward.started);
        statistic->read(backward.reading);
      }
      mine.verdicts.push_back(advice->examine(backward));
      mine.exchanges.push_back(backward.exchanges);
    }
  });
  for (const Advised& other : by_rank) {
    CHECK(other.exchanges == by_rank[0].exchanges);
    for (size_t i = 0; i < backwards.size(); ++i) {
      REQUIRE(other.verdicts[i].has_value() == by_rank[0].verdicts[i].has_value());
      if (other.verdicts[i]) CHECK(other.verdicts[i]->message == by_rank[0].verdicts[i]->message);
    }
  }
  return by_rank[0];
}

}  // namespace brigade::test
