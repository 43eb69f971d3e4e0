// unfold, compared with plain loops, and fold, its transpose.
#include <brigade/core/factory.h>
#include <brigade/core/random.h>
#include <brigade/core/view.h>
#include <brigade/kernels/conv.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>

#include <kernels/values.h>

#include <doctest/doctest.h>

#include <cmath>

namespace brigade::test::fold_test {
using namespace brigade::kernels;
using test::random;

namespace {

struct Row {
  Shape x;
  FoldParams params;
};
const std::vector<Row> kRows{
    {{2, 3, 5, 6}, {.kernel_size = {2, 3}}},
    {{1, 2, 7, 4}, {.kernel_size = {3, 2}, .padding = {1, 2}, .stride = {2, 1}}},
    {{2, 1, 9, 8}, {.kernel_size = {2, 3}, .dilation = {3, 2}, .padding = {0, 3}, .stride = {1, 3}}},
    {{1, 1, 1, 1}, {.kernel_size = {3, 3}, .padding = {1, 1}}},
    {{0, 3, 4, 4}, {.kernel_size = {2, 2}}},
    {{1, 2, 3, 40}, {.kernel_size = {1, 5}, .padding = {0, 2}}},
};

// The index in x of each column element; -1 for padding.
std::vector<int64_t> places(const Shape& x, const FoldParams& p) {
  const auto windows = [&](size_t d) {
    return (x[static_cast<int>(d) + 2] + 2 * p.padding[d] - p.dilation[d] * (p.kernel_size[d] - 1) - 1) / p.stride[d] +
           1;
  };
  std::vector<int64_t> result;
  for (int64_t plane = 0; plane < x[0] * x[1]; ++plane) {
    for (int64_t i = 0; i < p.kernel_size[0]; ++i) {
      for (int64_t j = 0; j < p.kernel_size[1]; ++j) {
        for (int64_t oh = 0; oh < windows(0); ++oh) {
          for (int64_t ow = 0; ow < windows(1); ++ow) {
            const int64_t h = oh * p.stride[0] - p.padding[0] + i * p.dilation[0];
            const int64_t w = ow * p.stride[1] - p.padding[1] + j * p.dilation[1];
            const bool inside = h >= 0 && w >= 0 && h < x[2] && w < x[3];
            result.push_back(inside ? (plane * x[2] + h) * x[3] + w : -1);
          }
        }
      }
    }
  }
  return result;
}

}  // namespace

TEST_CASE("unfold takes the windows, fold adds them up") {
  for (const DType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16}) {
    for (const Row& row : kRows) {
      CAPTURE(to_string(row.x));
      CAPTURE(name(dtype));
      const Tensor x = random(row.x, 1, dtype);
      const Tensor columns = unfold2d(x, row.params);
      CHECK(columns.dtype() == dtype);
      CHECK(columns.size(1) == row.x[1] * row.params.kernel_size[0] * row.params.kernel_size[1]);
      const auto at = places(row.x, row.params);
      const auto in = x.to_vector<double>();
      std::vector<double> expected;
      for (const int64_t place : at)
        expected.push_back(place < 0 ? 0 : in[static_cast<size_t>(place)]);
      CHECK(columns.to_vector<double>() == expected);

      const Tensor slopes = random(columns.sizes(), 2, dtype);
      const auto from = slopes.to_vector<double>();
      std::vector<double> sums(in.size());
      for (size_t i = 0; i < at.size(); ++i) {
        if (at[i] >= 0) sums[static_cast<size_t>(at[i])] += from[i];
      }
      const Tensor folded = fold2d(slopes, {row.x[2], row.x[3]}, row.params);
      CHECK(folded.sizes() == row.x);
      const auto found = folded.to_vector<double>();
      const double bound = dtype == kFloat64 ? 1e-14 : dtype == kFloat32 ? 2e-6 : dtype == kFloat16 ? 1e-3 : 8e-3;
      for (size_t i = 0; i < sums.size(); ++i)
        CHECK(std::abs(found[i] - sums[i]) <= bound * (1 + std::abs(sums[i])));
    }
  }
}

TEST_CASE("strided images and columns are taken as dense ones") {
  const FoldParams params{.kernel_size = {2, 2}, .stride = {1, 2}};
  const Tensor x = view::permute(random({5, 6, 2, 3}, 1, kFloat32), {2, 3, 0, 1});
  CHECK(unfold2d(x, params).to_vector<float>() == unfold2d(clone(x), params).to_vector<float>());
  const Tensor columns = view::transpose(random({2, 12, 12}, 1, kFloat32), 1, 2);
  CHECK(fold2d(columns, {5, 6}, params).to_vector<float>() ==
        fold2d(clone(columns), {5, 6}, params).to_vector<float>());
}

TEST_CASE("what does not fit is refused with the sizes that would") {
  const Tensor x = zeros({1, 2, 4, 4});
  CHECK_THROWS_WITH_AS(unfold2d(zeros({2, 4, 4}), {}), doctest::Contains("expected [N, C, H, W], got [2, 4, 4]"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(
      unfold2d(x, {.kernel_size = {5, 1}}),
      doctest::Contains("no window of kernel_size [5, 1] and dilation [1, 1] fits into an image [4, 4]"), ShapeError);
  CHECK_THROWS_AS(unfold2d(x, {.stride = {0, 1}}), ValueError);
  CHECK_THROWS_AS(unfold2d(zeros({1, 2, 4, 4}, kInt64), {}), DTypeError);
  CHECK_THROWS_WITH_AS(fold2d(zeros({1, 8, 10}), {4, 4}, {.kernel_size = {2, 2}}),
                       doctest::Contains("[N, a multiple of 4, 3 * 3] for an output [4, 4] and kernel_size [2, 2], got "
                                         "[1, 8, 10]"),
                       ShapeError);
  CHECK_THROWS_AS(fold2d(zeros({1, 7, 9}), {4, 4}, {.kernel_size = {2, 2}}), ShapeError);
  CHECK_THROWS_AS(fold2d(zeros({8, 9}), {4, 4}, {.kernel_size = {2, 2}}), ShapeError);
}

}  // namespace brigade::test::fold_test
