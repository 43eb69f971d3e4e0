// The dtype of results: every pair of dtypes, with dimensions and without.
#include <brigade/core/factory.h>
#include <brigade/kernels/elementwise.h>

#include <kernels/values.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <string>

namespace brigade::test::promotion_test {
using kernels::check_result_type;
using kernels::result_type;

namespace {

int kind(DType dtype) { return is_floating_point(dtype) ? 2 : dtype == kBool ? 0 : 1; }

// The wider of two dtypes; float16 and bfloat16 promote to float32.
DType wider(DType a, DType b) {
  if (a != b && is_half(a) && is_half(b)) return kFloat32;
  const DType order[] = {kBool, kUInt8, kInt32, kInt64, kBFloat16, kFloat16, kFloat32, kFloat64};
  const auto place = [&](DType dtype) { return std::find(std::begin(order), std::end(order), dtype); };
  return *std::max(place(a), place(b));
}

}  // namespace

TEST_CASE("tensors that both have dimensions, or both have none, meet in the wider dtype") {
  for (const DType a : test::kEveryDType) {
    for (const DType b : test::kEveryDType) {
      CAPTURE(std::string(name(a)));
      CAPTURE(std::string(name(b)));
      for (const Shape& sizes : {Shape{}, Shape{3}, Shape{0}}) {
        const Tensor x = empty(sizes, a), y = empty(sizes, b);
        CHECK(result_type({x, y}) == wider(a, b));
        CHECK(result_type({x, x, y}) == wider(a, b));
      }
    }
    for (const Shape& sizes : {Shape{}, Shape{2}}) {
      const Tensor alone = empty(sizes, a);
      CHECK(result_type({alone}) == a);
    }
  }
}

TEST_CASE("a tensor without dimensions takes part only where it is of a higher kind") {
  for (const DType with : test::kEveryDType) {
    for (const DType without : test::kEveryDType) {
      CAPTURE(std::string(name(with)));
      CAPTURE(std::string(name(without)));
      const Tensor x = empty({2, 3}, with), y = empty({}, without);
      const DType expected = kind(without) > kind(with) ? without : with;
      CHECK(result_type({x, y}) == expected);
      CHECK(result_type({y, x}) == expected);
      CHECK(result_type({y, x, y}) == expected);
    }
  }
  // Tensors with dimensions promote first.
  const Tensor half = empty({2}, kFloat16), wide = empty({}, kFloat64), whole = empty({1}, kInt64);
  CHECK(result_type({half, wide, whole}) == kFloat16);
  const Tensor small = empty({2}, kUInt8), number = empty({}, kInt64), flag = empty({1}, kBool);
  CHECK(result_type({small, number, flag}) == kUInt8);
}

TEST_CASE("undefined tensors do not count") {
  const Tensor none, whole = empty({2}, kInt32), flag = empty({}, kBool);
  CHECK(result_type({none, whole}) == kInt32);
  CHECK(result_type({flag, none, none}) == kBool);
  CHECK(result_type({none}) == kFloat32);
}

TEST_CASE("an in-place operation whose result would lose its fraction, or its number, is refused by name") {
  for (const DType result : test::kEveryDType) {
    for (const DType self : test::kEveryDType) {
      CAPTURE(std::string(name(result)));
      CAPTURE(std::string(name(self)));
      const bool loses = kind(result) > kind(self) && (kind(result) == 2 || kind(self) == 0);
      const Tensor x = empty({2}, self);
      if (loses) {
        CHECK_THROWS_AS(check_result_type("add_", result, x), DTypeError);
      } else {
        CHECK_NOTHROW(check_result_type("add_", result, x));
      }
    }
  }
  CHECK_THROWS_WITH_AS(
      check_result_type("div_", kFloat32, empty({2}, kInt64)),
      "result type Float can't be cast to the desired output type Long: div_ on int64 [2] has a result "
      "of float32; write out of place, or convert the tensor first with .to()",
      DTypeError);
  CHECK_THROWS_WITH_AS(check_result_type("add_", kInt32, empty({}, kBool)),
                       doctest::Contains("result type Int can't be cast to the desired output type Bool: add_ on bool"),
                       DTypeError);
}

}  // namespace brigade::test::promotion_test
