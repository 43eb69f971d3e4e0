// where, clamp and the operations of three tensors against plain loops.
#include <brigade/core/view.h>
#include <brigade/kernels/clamp.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/ternary.h>
#include <brigade/kernels/where.h>

#include <kernels/values.h>

#include <doctest/doctest.h>

#include <cmath>

using namespace brigade;
using namespace brigade::kernels;

namespace {

Tensor counted(const Shape& sizes, DType dtype, int first) {
  std::vector<double> values;
  for (int64_t i = 0; i < sizes.numel(); ++i)
    values.push_back(dtype == kBool ? (i + first) % 2 : static_cast<double>((i * 7 + first) % 23));
  return cast(tensor(values, sizes), dtype);
}

}  // namespace

TEST_CASE("where: every dtype, dense, broadcast, strided, with numbers on either side") {
  for (const DType dtype : test::kEveryDType) {
    CAPTURE(std::string(name(dtype)));
    const Tensor wide = counted({9, 14}, dtype, 3);
    const std::vector<std::array<Tensor, 3>> rows{
        {counted({5, 7}, kBool, 0), counted({5, 7}, dtype, 1), counted({5, 7}, dtype, 2)},
        {counted({4, 1}, kBool, 0), counted({3}, dtype, 1), counted({2, 1, 3}, dtype, 2)},
        {view::transpose(counted({7, 9}, kBool, 1), 0, 1), view::slice(wide, 1, 0, 14, 2), view::slice(wide, 1, 7, 14)},
        {counted({70001}, kBool, 0), counted({70001}, dtype, 1), counted({1}, dtype, 2)},
        {counted({0, 3}, kBool, 0), counted({1, 3}, dtype, 1), counted({}, dtype, 2)}};
    for (const auto& [condition, a, b] : rows) {
      const Tensor y = kernels::where(condition, a, b);
      const Shape sizes = broadcast_shapes(broadcast_shapes(condition.sizes(), a.sizes()), b.sizes());
      REQUIRE(y.sizes() == sizes);
      REQUIRE(y.dtype() == dtype);
      const Tensor left = kernels::where(condition, a, 1.0);
      const Tensor right = kernels::where(condition, 1.0, b);
      int64_t wrong = 0;
      for (int64_t i = 0; i<y.numel(); i += y.numel()> 1000 ? 997 : 1) {
        const bool is_a = test::broadcast_at(condition, sizes, i) != 0;
        wrong += test::broadcast_at(y, sizes, i) != test::broadcast_at(is_a ? a : b, sizes, i);
      }
      for (int64_t i = 0; i<left.numel(); i += left.numel()> 1000 ? 997 : 1)
        wrong += test::broadcast_at(left, left.sizes(), i) !=
                 (test::broadcast_at(condition, left.sizes(), i) != 0 ? test::broadcast_at(a, left.sizes(), i) : 1);
      for (int64_t i = 0; i<right.numel(); i += right.numel()> 1000 ? 997 : 1)
        wrong += test::broadcast_at(right, right.sizes(), i) !=
                 (test::broadcast_at(condition, right.sizes(), i) != 0 ? 1 : test::broadcast_at(b, right.sizes(), i));
      CHECK(wrong == 0);
    }
  }
  const Tensor chosen = tensor(std::vector<double>{1, 0}, {2});
  const Tensor condition = cast(chosen, kBool);
  CHECK(kernels::where(condition, 2.5, -1.0).to_vector<double>() == std::vector<double>{2.5, -1});
  CHECK(kernels::where(condition, 2.5, -1.0).dtype() == kFloat32);
  CHECK(kernels::where(condition, tensor<int64_t>({1, 2}), 0.5).to_vector<double>() == std::vector<double>{1, 0.5});
  CHECK(kernels::where(condition, tensor<int64_t>({1, 2}), 5.0).dtype() == kInt64);
  CHECK(kernels::where(condition, tensor<int64_t>({1, 2}), tensor<float>({0.5F, 1.5F})).dtype() == kFloat32);
  CHECK_THROWS_WITH_AS(kernels::where(chosen, 1.0, 2.0), doctest::Contains("expected a bool condition, got float64"),
                       DTypeError);
  CHECK_THROWS_AS(kernels::where(condition, zeros({3}), 2.0), ShapeError);
}

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
  CHECK_THROWS_AS(clamp(zeros({2}, kBool), {0, 1}), DTypeError);
  for (const DType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16}) {
    const Tensor grad = full({8}, 2, dtype);
    const Tensor low = cast(x, dtype);
    CHECK(clamp_backward(grad, low, {-1, 1}).to_vector<double>() == std::vector<double>{0, 0, 2, 0, 0, 0, 0, 0});
    CHECK(clamp_backward(grad, low, {-1, std::nullopt}).to_vector<double>() ==
          std::vector<double>{0, 0, 2, 2, 2, 0, 2, 0});
    CHECK(clamp_backward(grad, low, {std::nullopt, 1}).to_vector<double>() ==
          std::vector<double>{2, 2, 2, 0, 0, 0, 0, 2});
  }
  CHECK_THROWS_AS(clamp_backward(zeros({3}), zeros({4}), {0, 1}), ShapeError);
}

TEST_CASE("a whole number leaves integers what they are, another one makes float32 of them") {
  const Tensor yes = ones({3}, kBool);
  for (const DType dtype : {kInt64, kInt32, kUInt8}) {
    CAPTURE(std::string(name(dtype)));
    const Tensor x = ones({3}, dtype);
    for (const Borders& whole : {Borders{1, 2}, Borders{1, std::nullopt}, Borders{std::nullopt, 2}})
      CHECK(clamp(x, whole).dtype() == dtype);
    for (const Borders& part : {Borders{0.5, 2}, Borders{1, 2.5}, Borders{std::nullopt, 2.5}})
      CHECK(clamp(x, part).dtype() == kFloat32);
    CHECK(where(yes, x, 5.0).dtype() == dtype);
    CHECK(where(yes, 5.0, x).dtype() == dtype);
    CHECK(where(yes, x, 0.5).dtype() == kFloat32);
  }
  CHECK(where(yes, ones({3}, kBool), 1.0).dtype() == kBool);
  CHECK(where(yes, ones({3}, kBool), 2.0).dtype() == kInt64);
  CHECK(where(yes, ones({3}, kFloat16), 0.5).dtype() == kFloat16);
}

TEST_CASE("addcmul, addcdiv and lerp: dense and broadcast, every floating dtype") {
  for (const auto& [dtype, tolerance] : std::vector<std::pair<DType, double>>{
           {kFloat64, 1e-15}, {kFloat32, 1e-6}, {kFloat16, 2e-3}, {kBFloat16, 2e-2}}) {
    CAPTURE(std::string(name(dtype)));
    const auto number = [&, d = dtype](const Shape& sizes, int first) {
      return binary_scalar(counted(sizes, d, first), 8, BinaryOp::Div, false);
    };
    for (const auto& sizes : std::vector<std::array<Shape, 3>>{
             {{{5, 7}, {5, 7}, {5, 7}}}, {{{4, 1}, {3}, {2, 1, 3}}}, {{{513}, {513}, {1}}}, {{{0}, {1}, {0}}}}) {
      const Tensor a = number(sizes[0], 1);
      const Tensor b = number(sizes[1], 2);
      const Tensor c = binary_scalar(number(sizes[2], 5), 0.125, BinaryOp::Add, false);  // not 0
      const Shape all = broadcast_shapes(broadcast_shapes(sizes[0], sizes[1]), sizes[2]);
      const Tensor product = ternary(a, b, c, TernaryOp::Addcmul, -0.5);
      const Tensor quotient = ternary(a, b, c, TernaryOp::Addcdiv, 3);
      const Tensor mean = ternary(a, b, c, TernaryOp::Lerp, 1);
      REQUIRE(product.sizes() == all);
      REQUIRE(product.dtype() == dtype);
      const Shape two = broadcast_shapes(sizes[0], sizes[1]);
      const Tensor near = lerp(a, b, 0.25);
      const Tensor far = lerp(a, b, 0.75);
      const auto close = [tol = tolerance](double found, double exact) {
        return std::abs(found - exact) <= tol * std::max(1.0, std::abs(exact));
      };
      for (int64_t i = 0; i < product.numel(); i += 3) {
        const double x = test::broadcast_at(a, all, i), y = test::broadcast_at(b, all, i),
                     z = test::broadcast_at(c, all, i);
        CHECK(close(test::broadcast_at(product, all, i), x - 0.5 * y * z));
        CHECK(close(test::broadcast_at(quotient, all, i), x + 3 * y / z));
        CHECK(close(test::broadcast_at(mean, all, i), x + z * (y - x)));
      }
      for (int64_t i = 0; i < near.numel(); ++i) {
        const double x = test::broadcast_at(a, two, i), y = test::broadcast_at(b, two, i);
        CHECK(close(test::broadcast_at(near, two, i), 0.75 * x + 0.25 * y));
        CHECK(close(test::broadcast_at(far, two, i), 0.25 * x + 0.75 * y));
      }
    }
  }
  CHECK(lerp(tensor<float>({0.1F}), tensor<float>({0.7F}), 1).to_vector<float>()[0] == 0.7F);
  CHECK(ternary(zeros({2}), zeros({2}, kFloat64), zeros({2}), TernaryOp::Addcmul, 1).dtype() == kFloat64);
  CHECK_THROWS_AS(ternary(zeros({2}), zeros({3}), zeros({2}), TernaryOp::Addcmul, 1), ShapeError);
  CHECK_THROWS_WITH_AS(ternary(zeros({2}, kInt64), zeros({2}, kInt64), zeros({2}, kInt64), TernaryOp::Lerp, 1),
                       doctest::Contains("lerp: expected a floating dtype"), DTypeError);
}
