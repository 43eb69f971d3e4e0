// clamp and its gradient against plain loops.
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>

#include <kernels/values.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace brigade::test::clamp_test {
using namespace brigade::kernels;
using test::at;

TEST_CASE("clamp: borders, NaN, integers") {
  const double nan = std::nan("");
  const Tensor x = tensor(std::vector<double>{-3, -1, 0.5, 1, 4, nan, INFINITY, -INFINITY}, {8});
  CHECK(clamp(view::slice(x, 0, 0, 5), {-1, 1}).to_vector<double>() == std::vector<double>{-1, -1, 0.5, 1, 1});
  CHECK(std::isnan(clamp(x, {-1, 1}).to_vector<double>()[5]));
  CHECK(clamp(view::slice(x, 0, 6, 8), {-1, std::nullopt}).to_vector<double>() == std::vector<double>{INFINITY, -1});
  CHECK(clamp(view::slice(x, 0, 6, 8), {std::nullopt, 1}).to_vector<double>() == std::vector<double>{1, -INFINITY});
  CHECK(clamp(view::slice(x, 0, 0, 3), {2, 1}).to_vector<double>() == std::vector<double>{1, 1, 1});
  for (const Borders& borders : {Borders{nan, 1}, Borders{-1, nan}})
    CHECK(std::isnan(clamp(tensor<double>({0}), borders).to_vector<double>()[0]));
  const Tensor whole = tensor<int64_t>({-5, 0, 5});
  CHECK(clamp(whole, {-1, 3}).to_vector<int64_t>() == std::vector<int64_t>{-1, 0, 3});
  CHECK(clamp(whole, {std::nullopt, 3}).to_vector<int64_t>() == std::vector<int64_t>{-5, 0, 3});
  CHECK(clamp(whole, {-0.5, 3}).dtype() == kFloat32);
  CHECK(clamp(tensor<uint8_t>({3, 200}), {-4, 1000}).to_vector<int>() == std::vector<int>{3, 200});
  for (const DType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16}) {
    const Tensor grad = full({8}, 2, dtype);
    const Tensor low = cast(x, dtype);
    CHECK(clamp_backward(grad, low, {-1, 1}).to_vector<double>() == std::vector<double>{0, 0, 2, 0, 0, 0, 0, 0});
    CHECK(clamp_backward(grad, low, {-1, std::nullopt}).to_vector<double>() ==
          std::vector<double>{0, 0, 2, 2, 2, 0, 2, 0});
    CHECK(clamp_backward(grad, low, {std::nullopt, 1}).to_vector<double>() ==
          std::vector<double>{2, 2, 2, 0, 0, 0, 0, 2});
  }
}

TEST_CASE("borders that are integers leave integers what they are, floating ones make float32 of them") {
  for (const DType dtype : {kInt64, kInt32, kUInt8}) {
    CAPTURE(std::string(name(dtype)));
    const Tensor x = ones({3}, dtype);
    for (const Borders& whole : {Borders{1, 2}, Borders{1, std::nullopt}, Borders{std::nullopt, 2}})
      CHECK(clamp(x, whole).dtype() == dtype);
    for (const Borders& part : {Borders{1.0, 2}, Borders{1, 2.5}, Borders{std::nullopt, 2.0}})
      CHECK(clamp(x, part).dtype() == kFloat32);
  }
}

TEST_CASE("clamp and its gradient: every dtype, odd sizes, strided, empty, many elements") {
  const std::vector<Borders> all{{-1, 1}, {0, std::nullopt}, {std::nullopt, 2}, {-2.5, 0.5}, {1, 1}};
  for (const DType dtype : test::kEveryDType) {
    if (dtype == kBool) continue;
    CAPTURE(std::string(name(dtype)));
    const Tensor wide = test::numbers({9, 14}, dtype, 2);
    for (const Tensor& x : {test::numbers({1}, dtype), test::numbers({5, 7}, dtype), test::numbers({1025}, dtype),
                            view::transpose(test::numbers({5, 7}, dtype), 0, 1), view::slice(wide, 1, 1, 14, 3),
                            view::expand(test::numbers({3, 1}, dtype), {2, 3, 5}), test::numbers({0, 3}, dtype),
                            test::numbers({}, dtype), test::numbers({70001}, dtype)}) {
      CAPTURE(to_string(x.sizes()));
      for (const Borders& borders : all) {
        const double low = borders.lower.value_or(-1e3).to<double>(), high = borders.upper.value_or(1e3).to<double>();
        const Tensor y = clamp(x, borders);
        REQUIRE(y.sizes() == x.sizes());
        int64_t wrong = 0;
        // For uint8, a bound outside the range of the dtype is replaced by the end of the range.
        const double least = dtype == kUInt8 && y.dtype() == kUInt8 ? 0 : -1e3;
        for (int64_t i = 0; i < x.numel(); ++i)
          wrong += at(y, i) != std::min(std::max(at(x, i), std::max(low, least)), std::max(high, least));
        CHECK(wrong == 0);
        if (!is_floating_point(dtype)) continue;
        const Tensor grad = test::random(x.sizes(), 5, dtype);
        const Tensor slope = clamp_backward(grad, x, borders);
        REQUIRE(slope.sizes() == x.sizes());
        REQUIRE(slope.dtype() == dtype);
        for (int64_t i = 0; i < x.numel(); ++i)
          wrong += at(slope, i) != (at(x, i) > low && at(x, i) < high ? at(grad, i) : 0);
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("errors of clamp say what was expected") {
  CHECK_THROWS_WITH_AS(clamp(zeros({2}, kBool), {0, 1}),
                       "clamp: not defined for a bool tensor; convert with .to(kInt64)", DTypeError);
  CHECK_THROWS_WITH_AS(clamp_backward(zeros({3}), zeros({4}), {0, 1}),
                       doctest::Contains("clamp backward: expected a gradient like float32 [4], got float32 [3]"),
                       ShapeError);
}

}  // namespace brigade::test::clamp_test
