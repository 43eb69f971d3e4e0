// SlidingVector: elements that remain after drops from the front are contiguous, and dropped ones do not pile up.
#include <brigade/autograd/tape.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>

namespace brigade::test::sliding_vector_test {
using autograd::detail::SlidingVector;

TEST_CASE("a sliding vector holds what a deque holds") {
  SlidingVector<int> sliding;
  std::deque<int> expected;
  int next = 0;
  for (const size_t drop : {0, 3, 1, 7, 0, 20, 2, 2, 2, 40, 5}) {
    for (int i = 0; i < 9; ++i, ++next) {
      sliding.push_back(next);
      expected.push_back(next);
    }
    const size_t count = std::min(drop, expected.size());
    sliding.drop(count);
    expected.erase(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(count));
    REQUIRE(sliding.size() == expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      CHECK(sliding[i] == expected[i]);
      CHECK(sliding.span()[i] == expected[i]);
    }
  }
}

TEST_CASE("a sliding vector keeps no more than twice what is left") {
  SlidingVector<std::shared_ptr<int>> sliding;
  const auto element = std::make_shared<int>(1);
  for (int turn = 0; turn < 100; ++turn) {
    for (int i = 0; i < 10; ++i)
      sliding.push_back(element);
    if (sliding.size() > 80) sliding.drop(10);
    CHECK(element.use_count() <= 1 + 2 * 90);
  }
  sliding.drop(sliding.size());
  CHECK(element.use_count() == 1);
}

}  // namespace brigade::test::sliding_vector_test
