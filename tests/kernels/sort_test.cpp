// Sorting along a dimension, compared with std::stable_sort.
#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/indexing.h>

#include <kernels/values.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace brigade::test::sort_test {
using namespace brigade::kernels;

namespace {

// Both signs and many equal values; floating dtypes also get NaN, infinities, and both zeros.
Tensor mixed(const Shape& sizes, DType dtype) {
  std::vector<double> values;
  const bool floating = is_floating_point(dtype);
  for (int64_t i = 0; i < sizes.numel(); ++i) {
    const int64_t hash = (i * 2654435761 + 12345) % 1009;
    double value = static_cast<double>(hash % 201) - (dtype == kUInt8 ? 0 : 100);
    if (floating && hash % 31 == 0) value = std::numeric_limits<double>::quiet_NaN();
    if (floating && hash % 37 == 1) value = hash % 2 == 0 ? INFINITY : -INFINITY;
    if (floating && value == 0 && i % 2 == 0) value = -0.0;
    values.push_back(floating ? value / 8 : value);
  }
  return cast(tensor(values, sizes), dtype);
}

// Sorts NaN last.
bool comes_before(double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; }

std::vector<int64_t> order_of(const std::vector<double>& slice, bool descending) {
  std::vector<int64_t> order(slice.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const double x = slice[static_cast<size_t>(a)];
    const double y = slice[static_cast<size_t>(b)];
    return descending ? comes_before(y, x) : comes_before(x, y);
  });
  return order;
}

// Checks that `found` holds the first `kept` elements of each sorted slice, in order.
void check_sorted(const Sorted& found, const Tensor& x, int dim, bool descending, int64_t kept) {
  Shape sizes = x.sizes();
  if (!sizes.empty()) sizes[dim] = kept;
  REQUIRE(found.values.sizes() == sizes);
  REQUIRE(found.indices.sizes() == sizes);
  CHECK(found.values.dtype() == x.dtype());
  int64_t outer = 1;
  int64_t inner = 1;
  const int64_t length = x.dim() > 0 ? x.sizes()[dim] : 1;
  for (int d = 0; d < x.dim(); ++d)
    if (d != dim) (d < dim ? outer : inner) *= x.sizes()[d];
  const auto values = x.to_vector<double>();
  const auto sorted = found.values.to_vector<double>();
  const auto indices = found.indices.to_vector<int64_t>();
  int64_t wrong = 0;
  for (int64_t slice = 0; slice < outer * inner; ++slice) {
    const int64_t o = slice / inner;
    const int64_t i = slice % inner;
    std::vector<double> all;
    for (int64_t j = 0; j < length; ++j)
      all.push_back(values[static_cast<size_t>((o * length + j) * inner + i)]);
    const auto order = order_of(all, descending);
    for (int64_t j = 0; j < kept; ++j) {
      const auto at = static_cast<size_t>((o * kept + j) * inner + i);
      const double expected = all[static_cast<size_t>(order[static_cast<size_t>(j)])];
      const bool same = sorted[at] == expected || (std::isnan(sorted[at]) && std::isnan(expected));
      wrong +=
          same && std::signbit(sorted[at]) == std::signbit(expected) && indices[at] == order[static_cast<size_t>(j)]
              ? 0
              : 1;
    }
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("every dtype is sorted stably, in both directions, NaN as the largest") {
  for (const DType dtype : test::kEveryDType) {
    CAPTURE(name(dtype));
    for (const auto& [sizes, dim] : std::vector<std::pair<Shape, int>>{{{}, 0},
                                                                       {{0}, 0},
                                                                       {{1}, 0},
                                                                       {{17}, 0},
                                                                       {{3, 0}, 1},
                                                                       {{0, 3}, 1},
                                                                       {{5, 33}, 1},
                                                                       {{33, 5}, 0},
                                                                       {{3, 20, 4}, 1},
                                                                       {{2, 1500}, 1},
                                                                       {{70000}, 0}}) {
      CAPTURE(to_string(sizes));
      const Tensor x = mixed(sizes, dtype);
      for (const bool descending : {false, true})
        check_sorted(sort(x, dim, descending), x, dim, descending, x.dim() > 0 ? sizes[dim] : 1);
    }
  }
}

TEST_CASE("the k largest and smallest: few, many, all, none") {
  for (const DType dtype : test::kEveryDType) {
    CAPTURE(name(dtype));
    for (const auto& [sizes, dim] :
         std::vector<std::pair<Shape, int>>{{{}, 0}, {{1}, 0}, {{5, 33}, 1}, {{33, 5}, 0}, {{2, 3000}, 1}}) {
      CAPTURE(to_string(sizes));
      const Tensor x = mixed(sizes, dtype);
      const int64_t length = x.dim() > 0 ? sizes[dim] : 1;
      for (const int64_t k : {int64_t{0}, int64_t{1}, std::min<int64_t>(length, 20), length - length / 3, length}) {
        if (x.dim() == 0 && k == 0) continue;
        CAPTURE(k);
        for (const bool largest : {false, true})
          check_sorted(topk(x, k, dim, largest), x, dim, largest, k);
      }
    }
  }
  CHECK_THROWS_WITH_AS(topk(zeros({2, 3}), 4, 1, true), doctest::Contains("expected a k of 0..3"), ValueError);
  CHECK_THROWS_AS(topk(zeros({2, 3}), -1, 1, true), ValueError);
}

TEST_CASE("integers at the ends of their range, and a strided tensor") {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  const Tensor x = tensor<int64_t>({3, kMax, -1, kMin, 0, kMax - 1});
  CHECK(sort(x, 0, false).values.to_vector<int64_t>() == std::vector<int64_t>{kMin, -1, 0, 3, kMax - 1, kMax});
  CHECK(topk(x, 2, 0, true).indices.to_vector<int64_t>() == std::vector<int64_t>{1, 5});
  const Tensor base = mixed({40, 6}, kFloat32);
  const Tensor turned = view::transpose(base, 0, 1);
  check_sorted(sort(turned, 1, false), turned, 1, false, 40);
  check_sorted(topk(turned, 3, 0, true), turned, 0, true, 3);
}

}  // namespace brigade::test::sort_test
