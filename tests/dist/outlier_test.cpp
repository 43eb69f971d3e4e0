// Finds the rank whose gradients have another size, from the sizes alone.
#include <brigade/dist/diagnosis/outlier.h>

#include <doctest/doctest.h>

namespace brigade::test::outlier_test {
using dist::GradientSize;
using dist::Outlier;

// log2 of sums of squares, one per parameter.
std::vector<GradientSize> of(const std::vector<double>& sizes) {
  std::vector<GradientSize> all;
  for (const double size : sizes)
    all.push_back({size, {}});
  return all;
}

TEST_CASE("a rank that is far from the middle is found, with the parameter, the others and the offset") {
  std::vector<std::vector<GradientSize>> by_rank{of({3, 5, -999}), of({3.2, 5, -999}), of({13, 5.1, -999})};
  Outlier found = dist::find_outlier(by_rank);
  CHECK(found.ranks == std::vector<int>{2});
  REQUIRE(found.parameters.size() == 1);
  CHECK(found.parameters[0].position == 0);
  CHECK(found.parameters[0].rank == 2);
  CHECK(found.parameters[0].others == std::vector<int>{0, 1});
  CHECK(found.offset == doctest::Approx(9.8));
  CHECK(!found.hooks_differ);
  by_rank[2][0].hook = {"train.cpp", 12};
  found = dist::find_outlier(by_rank);
  CHECK(found.hooks_differ);
  CHECK(found.hook == Place("train.cpp", 12));
}

TEST_CASE("a rank with smaller gradients than the others is below the middle") {
  const Outlier found = dist::find_outlier(std::vector{of({3, 5}), of({13, 5}), of({12.8, 5})});
  CHECK(found.ranks == std::vector<int>{0});
  CHECK(found.offset == doctest::Approx(-9.8));
}

TEST_CASE("what is noise beside the other gradients of a rank, or near the others, is no outlier") {
  CHECK(dist::find_outlier(std::vector{of({-40, 5, 1}), of({-20, 5, 1})}).parameters.empty());
  CHECK(dist::find_outlier(std::vector{of({3, 5, 1}), of({11, 5, 1})}).parameters.empty());
  CHECK(dist::find_outlier(std::vector{of({3, 5, 1}), of({12.5, 5, 1})}).ranks == std::vector<int>{1});
}

TEST_CASE("a streak is six backwards with the same ranks, without a sound one between them") {
  const Outlier found = dist::find_outlier(std::vector{of({3}), of({13})});
  dist::OutlierStreak streak;
  for (int i = 1; i < dist::OutlierStreak::kBackwards; ++i)
    CHECK(!streak.add(found));
  CHECK(streak.add(found));
  streak.end();
  CHECK(!streak.add(found));
}

}  // namespace brigade::test::outlier_test
