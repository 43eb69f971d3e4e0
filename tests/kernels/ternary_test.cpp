// Addcmul, addcdiv and lerp, the operations of three tensors, against plain loops.
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>

#include <kernels/values.h>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace brigade::test::ternary_test {
using namespace brigade::kernels;
using test::at;
using test::counted;

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

TEST_CASE("addcmul, addcdiv and lerp of views, and of many elements") {
  for (const DType dtype : test::kEveryFloating) {
    CAPTURE(std::string(name(dtype)));
    const double bound = test::tolerance(dtype);
    const auto views = [&](uint64_t seed) {
      return std::vector<Tensor>{view::transpose(test::random({7, 5}, seed, dtype), 0, 1),
                                 view::slice(test::random({5, 23}, seed, dtype), 1, 1, 22, 3),
                                 view::expand(test::random({5, 1}, seed, dtype), {5, 7}),
                                 test::random({70001}, seed, dtype)};
    };
    const auto first = views(1), second = views(2), third = views(3);
    for (size_t v = 0; v < first.size(); ++v) {
      CAPTURE(v);
      const Tensor &a = first[v], &b = second[v];
      const Tensor c = binary_scalar(unary(third[v], UnaryOp::Abs), 0.5, BinaryOp::Add, false);  // not near 0
      const Tensor product = ternary(a, b, c, TernaryOp::Addcmul, 0.75);
      const Tensor quotient = ternary(a, b, c, TernaryOp::Addcdiv, -2);
      const Tensor mean = ternary(a, b, c, TernaryOp::Lerp, 1);
      const Tensor near = lerp(a, b, 0.3);
      int64_t wrong = 0;
      const int64_t apart = a.numel() > 1000 ? 97 : 1;
      for (int64_t i = 0; i < a.numel(); i += apart) {
        const double x = at(a, i), y = at(b, i), z = at(c, i);
        // Terms of up to about 10 may cancel.
        wrong += !test::is_close(at(product, i), x + 0.75 * y * z, 10 * bound);
        wrong += !test::is_close(at(quotient, i), x - 2 * y / z, 10 * bound);
        wrong += !test::is_close(at(mean, i), x + z * (y - x), 10 * bound);
        wrong += !test::is_close(at(near, i), x + 0.3 * (y - x), bound);
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("errors of operations of three tensors say what was expected") {
  const Tensor whole = zeros({2}, kInt64);
  CHECK_THROWS_WITH_AS(ternary(whole, whole, whole, TernaryOp::Addcmul, 1),
                       "addcmul: expected a floating dtype, got int64; convert with .to(kFloat32)", DTypeError);
  CHECK_THROWS_WITH_AS(ternary(whole, whole, whole, TernaryOp::Addcdiv, 1),
                       "addcdiv: expected a floating dtype, got int64; convert with .to(kFloat32)", DTypeError);
  CHECK_THROWS_WITH_AS(lerp(whole, whole, 0.5),
                       "lerp: expected a floating dtype, got int64; convert with .to(kFloat32)", DTypeError);
  CHECK_THROWS_AS(lerp(zeros({2}), zeros({3}), 0.5), ShapeError);
}

}  // namespace brigade::test::ternary_test
