#include <brigade/data/sampler.h>

#include <brigade/core/error.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

namespace brigade::test::sampler_test {

TEST_CASE("a sequential sampler counts up, and a random one gives every index once, in another order each epoch") {
  CHECK(data::SequentialSampler(4).indices() == std::vector<int64_t>{0, 1, 2, 3});
  CHECK(data::SequentialSampler(0).indices().empty());

  data::RandomSampler sampler(50, 3);
  const std::vector<int64_t> first = sampler.indices();
  CHECK(sampler.indices() == first);
  std::vector<int64_t> sorted = first;
  std::sort(sorted.begin(), sorted.end());
  std::vector<int64_t> all(50);
  std::iota(all.begin(), all.end(), 0);
  CHECK(sorted == all);
  sampler.set_epoch(1);
  CHECK(sampler.indices() != first);
  CHECK(sampler.size() == 50);
  // The stream of a seed is fixed, so that a training can be reproduced.
  CHECK(data::permutation(6, 1) == data::permutation(6, 1));
  CHECK(data::permutation(6, 1) != data::permutation(6, 2));
  CHECK(data::permutation(8, 7) == data::RandomSampler(8, 7).indices());
}

TEST_CASE("a permutation puts every index everywhere about as often") {
  int at[4][4] = {};
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    const std::vector<int64_t> order = data::permutation(4, seed);
    for (size_t i = 0; i < 4; ++i)
      ++at[i][order[i]];
  }
  // 1000 expected each; the bound is six standard deviations of the binomial distribution.
  for (const auto& row : at)
    for (const int count : row)
      CHECK(std::abs(count - 1000) < 165);
}

TEST_CASE("a fingerprint tells one order from another") {
  data::RandomSampler sampler(20, 1);
  const uint64_t before = sampler.fingerprint();
  CHECK(data::RandomSampler(20, 1).fingerprint() == before);
  CHECK(data::RandomSampler(20, 2).fingerprint() != before);
  CHECK(data::RandomSampler(21, 1).fingerprint() != before);
  CHECK(data::SequentialSampler(20).fingerprint() != before);
}

TEST_CASE("samplers refuse a negative size") {
  CHECK_THROWS_AS(data::SequentialSampler(-1), ValueError);
  CHECK_THROWS_AS(data::RandomSampler(-1), ValueError);
  CHECK_THROWS_AS(data::permutation(-1, 0), ValueError);
}

}  // namespace brigade::test::sampler_test
