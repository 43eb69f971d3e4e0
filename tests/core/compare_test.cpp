#include <brigade/core/compare.h>
#include <brigade/core/factory.h>
#include <brigade/core/safetensors.h>

#include "temporary_folder.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace brigade::test::compare_test {
namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

Tensor values(const std::vector<double>& numbers) { return tensor(numbers, {static_cast<int64_t>(numbers.size())}); }
check::Comparison compared(const std::vector<double>& actual, const std::vector<double>& expected) {
  return check::compare("x", values(actual), values(expected));
}
}  // namespace

TEST_CASE("the largest difference, where it is, the angle and the bound") {
  const Tensor expected = tensor(std::vector<double>{1, 2, -4, 0}, {2, 2});
  const Tensor actual = tensor(std::vector<double>{1, 2.5, -4.25, 0}, {2, 2});
  const check::Comparison row = check::compare("w", actual, expected, {.bound = 0.1});
  CHECK(row.max_abs == 0.5);
  CHECK(row.worst_index == std::vector<int64_t>{0, 1});
  CHECK(row.actual == 2.5);
  CHECK(row.expected == 2);
  CHECK(row.max_rel == doctest::Approx(0.2));
  CHECK(row.cosine == doctest::Approx(23 / std::sqrt(21 * (1 + 6.25 + 18.0625))));
  CHECK(row.bound == doctest::Approx(0.4));  // relative to the largest magnitude, 4
  CHECK_FALSE(row.passed);
  CHECK(check::compare("w", actual, expected, {.bound = 0.125}).passed);
  CHECK(check::compare("w", actual, expected, {.bound = 0.1, .least_scale = 5}).passed);
  // Opposite directions and zero vectors.
  CHECK(compared({-1, -2}, {1, 2}).cosine == doctest::Approx(-1));
  CHECK(compared({0, 0}, {0, 0}).cosine == 1);
  CHECK(compared({0, 0}, {1, 0}).cosine == 0);
  CHECK(compared({1e300, 1e300}, {1e300, 1e300}).cosine == doctest::Approx(1));
}

TEST_CASE("what is not finite agrees with the same only") {
  CHECK(compared({kNaN, kInfinity, -kInfinity, 1}, {kNaN, kInfinity, -kInfinity, 1}).passed);
  for (const double expected : {kNaN, kInfinity, -kInfinity, 1.0}) {
    for (const double actual : {kNaN, kInfinity, -kInfinity, 1.0}) {
      const bool same = actual == expected || (std::isnan(actual) && std::isnan(expected));
      const check::Comparison row = compared({2, actual}, {2, expected});
      CHECK(row.passed == same);
      if (!same) CHECK(row.worst_index == std::vector<int64_t>{1});
    }
  }
  CHECK(compared({}, {}).passed);
}

TEST_CASE("the default bound grows with the roundings, and integers are equal or not") {
  CHECK(check::default_bound(kFloat32) == doctest::Approx(8 * 0x1p-23));
  CHECK(check::default_bound(kFloat64, 100) == doctest::Approx(80 * 0x1p-52));
  CHECK(check::default_bound(kBFloat16, 1, 2) == doctest::Approx(0x1p-7));
  CHECK(check::default_bound(kInt64) == 0);
  CHECK(compared({1 + 7 * 0x1p-52}, {1}).passed);
  CHECK_FALSE(compared({1 + 9 * 0x1p-52}, {1}).passed);
  const auto integers = [](int64_t last) { return tensor(std::vector<int64_t>{1, last}, {2}); };
  const int64_t large = (int64_t{1} << 53) + 1;  // not representable as a double
  CHECK(check::compare("i", integers(large), integers(large)).passed);
  CHECK_FALSE(check::compare("i", integers(large), integers(large - 1)).passed);
}

TEST_CASE("another shape or dtype, a missing and an additional tensor are named") {
  const check::Report report =
      check::compare(check::NamedTensors{{"a", values({1, 2})}, {"b", values({1})}, {"c", values({1})}},
                     check::NamedTensors{{"a", values({1})}, {"b", tensor<int64_t>({1})}, {"d", values({1})}});
  REQUIRE(report.rows.size() == 4);
  CHECK_FALSE(report.passed());
  CHECK(report.rows[0].problem == "expected the shape [2], got [1]");
  CHECK(report.rows[1].problem == "expected the dtype float64, got int64");
  CHECK(report.rows[2].problem == "missing: expected float64 [1]");
  CHECK(report.rows[3].problem == "additional: float64 [1] is expected by nobody");
  const std::string table = report.table();
  for (const char* part : {"tensor  max abs", "\na       NO   expected the shape", "\nd       NO   additional"})
    CHECK_MESSAGE(table.find(part) != std::string::npos, table);
  CHECK_THROWS_WITH_AS(check::compare(check::NamedTensors{{"a", values({1})}, {"a", values({1})}}, {}),
                       doctest::Contains("two tensors are named 'a'"), ValueError);
}

TEST_CASE("a file says what is expected; another floating dtype has the bound of the coarser one") {
  const test::TemporaryFolder folder;
  const std::string file = folder / "step.safetensors";
  const Tensor tenth = tensor<float>({0.1F});
  save_safetensors(file, {{"input.0", values({1})},
                          {"parameter.w", values({1})},
                          {"grad_output.0", values({1})},
                          {"grad.w", tenth},
                          {"loss", scalar_tensor<double>(2.0)}});
  const check::Report report = check::compare(file, {{"loss", scalar_tensor<double>(2.0)}, {"grad.w", values({0.1})}});
  CHECK_MESSAGE(report.passed(), report.table());
  CHECK(report.rows.size() == 2);
  CHECK_FALSE(check::compare(file, {{"loss", scalar_tensor<double>(2.0)}}).passed());
  CHECK_FALSE(check::compare(file, {{"loss", scalar_tensor<double>(2.0)}, {"grad.w", values({0.1001})}}).passed());
  CHECK_THROWS_AS(check::compare(folder / "none.safetensors", {}), IoError);
}

}  // namespace brigade::test::compare_test
