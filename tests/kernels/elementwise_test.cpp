// Arithmetic, comparisons, and unary functions, compared with plain loops in double, over dtypes, odd sizes, strided
// and unaligned views, and empty tensors.
#include <brigade/core/view.h>
#include <brigade/kernels/activation.h>
#include <brigade/kernels/elementwise.h>

#include <kernels/values.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace brigade::test::elementwise_test {
using namespace brigade::kernels;
using test::at;
using test::broadcast_at;
using test::numbers;

TEST_CASE("binary operations: every dtype, broadcasting, strided and unaligned views, empty tensors") {
  struct Row {
    BinaryOp op;
    double (*f)(double, double);
  };
  const std::vector<Row> rows{{BinaryOp::Add, [](double a, double b) { return a + b; }},
                              {BinaryOp::Sub, [](double a, double b) { return a - b; }},
                              {BinaryOp::Mul, [](double a, double b) { return a * b; }},
                              {BinaryOp::Maximum, [](double a, double b) { return std::max(a, b); }},
                              {BinaryOp::Minimum, [](double a, double b) { return std::min(a, b); }}};
  for (const DType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16, kInt64, kInt32}) {
    const Tensor base = numbers({9, 11}, dtype, 1);
    const std::vector<std::pair<Tensor, Tensor>> operands{
        {numbers({5, 7}, dtype), numbers({5, 7}, dtype, 2)},
        {numbers({3, 1, 5}, dtype), numbers({4, 1}, dtype, 2)},
        {numbers({}, dtype, 4), numbers({13}, dtype, 2)},
        {view::transpose(numbers({5, 7}, dtype), 0, 1), numbers({7, 5}, dtype, 2)},
        {view::slice(base, 1, 1, 11, 3), view::slice(base, 1, 2, 6)},
        {numbers({0, 3}, dtype), numbers({1, 3}, dtype)},
        {numbers({70001}, dtype), numbers({70001}, dtype, 3)}};
    for (const auto& [a, b] : operands) {
      const Shape sizes = broadcast_shapes(a.sizes(), b.sizes());
      for (const Row& row : rows) {
        const Tensor result = binary(a, b, row.op);
        REQUIRE(result.sizes() == sizes);
        REQUIRE(result.dtype() == dtype);
        int64_t wrong = 0;
        for (int64_t i = 0; i<result.numel(); i += result.numel()> 1000 ? 997 : 1) {
          wrong += at(result, i) != row.f(broadcast_at(a, sizes, i), broadcast_at(b, sizes, i));
        }
        CAPTURE(name(dtype));
        CHECK(wrong == 0);
      }
    }
  }
  CHECK(binary(numbers({2}, kInt64), numbers({2}, kFloat16), BinaryOp::Add).dtype() == kFloat16);
  CHECK(at(binary(tensor<int64_t>({7}), tensor<int64_t>({2}), BinaryOp::Div), 0) == 3.5);
  CHECK_THROWS_AS(binary(numbers({2}, kFloat32), numbers({3}, kFloat32), BinaryOp::Add), ShapeError);
  CHECK_THROWS_AS(binary(numbers({2}, kBool), numbers({2}, kBool), BinaryOp::Sub), DTypeError);
}

TEST_CASE("scalars, comparisons and unary functions") {
  const Tensor x = tensor(std::vector<double>{-2, -0.5, 0, 0.5, 3}, {5});
  CHECK(binary_scalar(x, 2, BinaryOp::Sub, true).to_vector<double>() == std::vector<double>{4, 2.5, 2, 1.5, -1});
  CHECK(binary_scalar(tensor<int64_t>({3}), 0.5, BinaryOp::Mul, false).dtype() == kFloat32);
  CHECK(compare_scalar(x, 0, CompareOp::Greater).to_vector<int>() == std::vector<int>{0, 0, 0, 1, 1});
  CHECK(compare(tensor<int64_t>({1, 2}), tensor<float>({1.5, 1.5}), CompareOp::Less).to_vector<int>() ==
        std::vector<int>{1, 0});
  CHECK(compare_scalar(tensor<int64_t>({0, 1}), 0.5, CompareOp::Less).to_vector<int>() == std::vector<int>{1, 0});
  CHECK(unary(x, UnaryOp::Sign).to_vector<double>() == std::vector<double>{-1, -1, 0, 1, 1});
  CHECK(unary(x, UnaryOp::Abs).to_vector<double>() == std::vector<double>{2, 0.5, 0, 0.5, 3});
  CHECK(unary(tensor<int64_t>({-3}), UnaryOp::Square).to_vector<int64_t>() == std::vector<int64_t>{9});
  CHECK_THROWS_AS(unary(tensor<int64_t>({1}), UnaryOp::Exp), DTypeError);
  const Tensor nan = tensor<float>({std::nanf(""), 1});
  CHECK(std::isnan(at(binary(nan, tensor<float>({2, 2}), BinaryOp::Maximum), 0)));
}

TEST_CASE("a few elements are computed to the same bits as many") {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  const std::vector<float> x = {0.1F, -0.0F, 0.0F, inf, -inf, nan, 1e-45F, 3e38F, 7.0F, -1.5F};
  const std::vector<float> y = {0.3F, 0.0F, -2.0F, inf, 0.0F, 1.0F, 0.5F, 3e38F, 3.0F, -0.0F};
  const Tensor many_x = tensor(x, {10}), many_y = tensor(y, {10});
  const auto bits = [](const Tensor& t) {
    std::vector<uint32_t> result(static_cast<size_t>(t.numel()));
    for (int64_t i = 0; i < t.numel(); ++i) {
      const float value = t.data_ptr<float>()[i];
      result[static_cast<size_t>(i)] = std::isnan(value) ? 0x7fc00000U : std::bit_cast<uint32_t>(value);
    }
    return result;
  };
  for (const auto op : {BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Div, BinaryOp::Maximum}) {
    CAPTURE(static_cast<int>(op));
    const std::vector<uint32_t> expected = bits(binary(many_x, many_y, op));
    const std::vector<uint32_t> expected_relu = bits(relu(many_x));
    const std::vector<uint32_t> expected_slope = bits(relu_backward(many_y, many_x));
    for (int64_t n = 0; n <= 6; ++n) {
      for (int64_t first = 0; first + n <= 10; ++first) {
        CAPTURE(n);
        CAPTURE(first);
        const Tensor few_x = contiguous(view::slice(many_x, 0, first, first + n));
        const Tensor few_y = contiguous(view::slice(many_y, 0, first, first + n));
        const auto part = [&](const std::vector<uint32_t>& all) {
          return std::vector<uint32_t>(all.begin() + first, all.begin() + first + n);
        };
        CHECK(bits(binary(few_x, few_y, op)) == part(expected));
        CHECK(bits(relu(few_x)) == part(expected_relu));
        CHECK(bits(relu_backward(few_y, few_x)) == part(expected_slope));
      }
    }
  }
}

}  // namespace brigade::test::elementwise_test
