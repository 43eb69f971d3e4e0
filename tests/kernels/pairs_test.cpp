// Adds the elements of two ranks and measures them in one pass.
#include <brigade/kernels/cpu/vector/elementwise.h>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace brigade::test::pairs_test {
using namespace brigade::kernels::cpu;
using doctest::Approx;

namespace {

std::vector<float> numbers(int64_t n, float start) {
  std::vector<float> all(static_cast<size_t>(n));
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = start + 0.37F * static_cast<float>((i * 7) % 11);
  return all;
}

double squares_of(const std::vector<float>& x) {
  double sum = 0;
  for (const float each : x)
    sum += static_cast<double>(each) * static_cast<double>(each);
  return sum;
}

// Each element is rounded after the sum and after the product.
std::vector<float> expected(const std::vector<float>& a, const std::vector<float>& b, float factor) {
  std::vector<float> all;
  for (size_t i = 0; i < a.size(); ++i) {
    const float sum = a[i] + b[i];
    all.push_back(sum * factor);
  }
  return all;
}

}  // namespace

TEST_CASE("a pair is added bit for bit and measured, whatever the length") {
  for (const int64_t n : {0, 1, 3, 8, 15, 16, 17, 33, 1000, 4099}) {
    CAPTURE(n);
    const auto first = numbers(n, -1.3F);
    const auto second = numbers(n, 0.1F);
    const auto sum = expected(first, second, 1.0F / 3);
    std::vector<float> x(first.size()), y(first.size());
    add_pair(first.data(), second.data(), 1.0F / 3, x.data(), y.data(), n);
    CHECK(x == sum);
    CHECK(y == sum);
    // In place.
    auto a = first;
    auto b = second;
    const PairSquares found = add_and_measure_pair(a.data(), b.data(), 1.0F / 3, a.data(), b.data(), n);
    CHECK(a == sum);
    CHECK(b == sum);
    CHECK(found.first == Approx(squares_of(first)).epsilon(1e-12));
    CHECK(found.second == Approx(squares_of(second)).epsilon(1e-12));
  }
}

TEST_CASE("squares are finite exactly when a rank's elements are") {
  for (const size_t at : {size_t{0}, size_t{20}, size_t{36}}) {
    for (const float odd : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::max()}) {
      CAPTURE(at);
      CAPTURE(odd);
      auto a = numbers(37, 0);
      auto b = numbers(37, 0);
      b[at] = odd;
      const PairSquares found = add_and_measure_pair(a.data(), b.data(), 1, a.data(), b.data(), 37);
      CHECK(found.first == Approx(squares_of(numbers(37, 0))).epsilon(1e-12));
      CHECK(std::isfinite(found.second) == std::isfinite(odd));
    }
  }
}

}  // namespace brigade::test::pairs_test
