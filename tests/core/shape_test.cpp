// Shapes below and above the inline capacity behave like std::vector.
#include <brigade/core/shape.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

namespace brigade::test::shape_test {

TEST_CASE("whatever is done to shapes, they hold what vectors hold") {
  std::mt19937 random(1);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  constexpr size_t kLists = 12;
  std::vector<Shape> shapes(kLists);
  std::vector<std::vector<int64_t>> vectors(kLists);
  size_t longest = 0, copied_far = 0;
  for (int step = 0; step < 40'000; ++step) {
    const size_t i = below(kLists), j = below(kLists);
    std::vector<int64_t>& vector = vectors[i];
    const size_t place = vector.empty() ? 0 : below(vector.size());
    switch (below(10)) {
      case 0:
      case 1:
        if (vector.size() == kMaxDims) break;
        shapes[i].push_back(step);
        vector.push_back(step);
        break;
      case 2:
        if (vector.size() == kMaxDims) break;
        shapes[i].insert(static_cast<int>(place), step);
        vector.insert(vector.begin() + static_cast<std::ptrdiff_t>(place), step);
        break;
      case 3:
        if (vector.empty()) break;
        shapes[i].erase(static_cast<int>(place));
        vector.erase(vector.begin() + static_cast<std::ptrdiff_t>(place));
        break;
      case 4:
        if (vector.empty()) break;
        shapes[i].pop_back();
        vector.pop_back();
        break;
      case 5:  // also self-assignment
        shapes[i] = shapes[j];
        vector = std::vector<int64_t>(vectors[j]);
        copied_far += vector.size() > 8;
        break;
      case 6:
        if (i == j) break;
        shapes[i] = std::move(shapes[j]);
        vector = std::exchange(vectors[j], {});
        shapes[j] = Shape();
        break;
      case 7: {
        Shape copy(shapes[j]);
        const Shape moved(std::move(copy));
        shapes[i] = moved;
        vector = std::vector<int64_t>(vectors[j]);
        break;
      }
      case 8: {
        Shape as_long(Shape::AsLongAs{shapes[j]});
        for (int d = 0; d < as_long.size(); ++d)
          as_long[d] = d;
        shapes[i] = std::move(as_long);
        vector.resize(vectors[j].size());
        for (size_t d = 0; d < vector.size(); ++d)
          vector[d] = static_cast<int64_t>(d);
        break;
      }
      default: std::swap(shapes[i], shapes[j]); std::swap(vectors[i], vectors[j]);
    }
    longest = std::max(longest, vectors[i].size());
    REQUIRE(std::vector<int64_t>(shapes[i].begin(), shapes[i].end()) == vectors[i]);
    REQUIRE(std::vector<int64_t>(shapes[j].begin(), shapes[j].end()) == vectors[j]);
  }
  CHECK(longest > 16);
  CHECK(copied_far > 50);
}

}  // namespace brigade::test::shape_test
