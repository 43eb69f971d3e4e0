// Runs advice on fake backwards with synthetic numbers. The ranks are threads, so that the exchanges between them are
// real.
#pragma once

#include <brigade/dist/diagnosis/advice.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/dist/groups/threads/run_threads.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace brigade::test {

struct FakeBackward final : dist::FinishedBackward {
  // The backward of one rank: three parameters that every rank used, in two buckets, and nothing unusual.
  explicit FakeBackward(dist::ProcessGroupPtr among) : group(std::move(among)) {
    at.ranks = group->size();
    found.users.assign(3, group->size());
    found.present = group->size();
    seen.ready = {1000, 2000, 3000};
  }

  dist::Moment moment() const override { return at; }
  const dist::Outcome& outcome() const override { return found; }
  const dist::Measured& measured() const override { return sizes; }
  std::span<const dist::NamedParameter> parameters() const override { return named; }
  bool find_unused_parameters() const override { return finds_unused; }
  size_t buckets() const override { return layout.size(); }
  std::span<const uint32_t> bucket(size_t index) const override { return layout[index]; }
  int rank() const override { return group->rank(); }
  int64_t rows() const override { return started.rows; }
  std::span<const double> sums_of_squares() const override { return sums; }
  const dist::NonFinite& non_finite() const override { return bad; }
  const dist::RoundEvents& events() const override { return seen; }
  std::vector<std::string> exchange(const std::string& mine, const char* about) override {
    ++exchanges;
    return group->all_gather_text(mine, about);
  }

  dist::ProcessGroupPtr group;
  dist::Moment at{.iteration = 7, .where = SourceLocation::current()};
  dist::Outcome found;
  dist::Measured sizes;
  std::vector<dist::NamedParameter> named{{"a.weight", zeros({4})}, {"b.weight", zeros({2})}, {"c", zeros({1})}};
  bool finds_unused = false;
  std::vector<std::vector<uint32_t>> layout{{2, 1}, {0}};
  dist::StartedBackward started{.number = 7, .rows = 8};
  dist::WordReading reading;  // of the statistic of the advice
  std::vector<double> sums{1, 1, 1};
  dist::NonFinite bad;
  dist::RoundEvents seen;
  int exchanges = 0;
};

// Sets the numbers of one more backward of a rank.
using Change = std::function<void(int rank, FakeBackward& backward)>;

// The verdicts of advice on consecutive backwards, and how often it asked the other ranks. A check fails unless both
// are the same on every rank.
struct Advised {
  std::vector<std::optional<dist::Verdict>> verdicts;  // one per backward
  std::vector<int> exchanges;                          // in each
};
inline Advised advise(const std::string& name, int ranks, const std::vector<Change>& backwards) {
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
