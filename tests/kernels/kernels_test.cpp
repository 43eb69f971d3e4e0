// CPU kernels against plain loops in double, over dtypes, odd sizes, strided and unaligned views, and empty tensors.
#include <brigade/core/view.h>
#include <brigade/kernels/activation.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/matmul.h>
#include <brigade/kernels/reduce.h>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>

using namespace brigade;
using namespace brigade::kernels;

namespace {

// Small values that every dtype holds exactly (0..3 for unsigned and bool).
Tensor numbers(const Shape& sizes, DType dtype, int seed = 0) {
  std::vector<double> values;
  const bool is_signed = dtype != kUInt8 && dtype != kBool;
  for (int64_t i = 0; i < sizes.numel(); ++i)
    values.push_back(static_cast<double>((i * 5 + seed) % 7) - (is_signed ? 3 : 0));
  if (dtype == kBool) {
    for (double& v : values)
      v = v > 3 ? 1 : 0;
  }
  return cast(tensor(values, sizes), dtype);
}

double at(const Tensor& x, int64_t i) { return detail::element_as_double(x, i); }

// Element i of the broadcast of x to sizes.
double broadcast_at(const Tensor& x, const Shape& sizes, int64_t i) { return at(view::expand(x, sizes), i); }

constexpr DType kAll[] = {kFloat64, kFloat32, kFloat16, kBFloat16, kInt64, kInt32, kUInt8, kBool};

}  // namespace

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

TEST_CASE("copies cast between all dtypes, through any strides") {
  for (const DType from : kAll) {
    for (const DType to : kAll) {
      const Tensor source = view::transpose(numbers({3, 4}, from), 0, 1);
      const Tensor memory = zeros({5, 6}, to);
      const Tensor target = view::slice(view::slice(memory, 0, 1, 5), 1, 0, 6, 2);
      copy(target, source);
      for (int64_t i = 0; i < 12; ++i) {
        const double value = at(source, i);
        const double expected = to == kBool ? (value != 0) : to == kUInt8 && value < 0 ? 256 + value : value;
        CAPTURE(name(from));
        CAPTURE(name(to));
        CHECK(at(target, i) == expected);
      }
      CHECK(at(memory, 0) == 0);
    }
  }
  const Tensor x = zeros({2, 3});
  add_inplace(x, tensor<float>({1, 2, 3}), 0.5);
  mul_inplace(x, tensor(std::vector<float>{1, 10}, {2, 1}));
  scale_inplace(x, 2);
  CHECK(x.to_vector<float>() == std::vector<float>{1, 2, 3, 10, 20, 30});
  CHECK_THROWS_AS(add_inplace(x, zeros({2, 2, 3}), 1), ShapeError);
}

TEST_CASE("matrix products agree with plain loops, in every dtype and layout, and write where they are told") {
  for (const DType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16}) {
    for (const auto& [m, k, n] :
         std::vector<std::array<int64_t, 3>>{{1, 1, 1}, {3, 5, 2}, {17, 9, 33}, {40, 50, 30}, {2, 0, 3}, {0, 4, 3}}) {
      for (const bool ta : {false, true}) {
        for (const bool tb : {false, true}) {
          const Tensor a = numbers(ta ? Shape{k, m} : Shape{m, k}, dtype);
          const Tensor b = numbers(tb ? Shape{n, k} : Shape{k, n}, dtype, 3);
          const Tensor out = full({m, n}, 1, dtype);
          const Tensor result = matmul(a, b, {.transpose_a = ta, .transpose_b = tb, .out = out, .accumulate = true});
          CHECK(result.is_same(out));
          int64_t wrong = 0;
          for (int64_t i = 0; i < m; ++i) {
            for (int64_t j = 0; j < n; ++j) {
              double expected = 1;
              for (int64_t l = 0; l < k; ++l)
                expected += at(a, ta ? l * m + i : i * k + l) * at(b, tb ? j * k + l : l * n + j);
              // Sums of small whole numbers; bfloat16 rounds those above 256.
              wrong +=
                  std::abs(at(result, i * n + j) - expected) > (dtype == kBFloat16 ? 0.01 * std::abs(expected) + 1 : 0);
            }
          }
          CAPTURE(name(dtype));
          CHECK(wrong == 0);
        }
      }
    }
  }
  // A view with no unit stride is copied; leading dimensions broadcast.
  const Tensor wide = numbers({2, 3, 8}, kFloat32);
  const Tensor view = view::slice(wide, 2, 0, 8, 2);
  const Tensor product = matmul(view, numbers({1, 4, 2}, kFloat32, 1), {});
  CHECK(product.sizes() == Shape{2, 3, 2});
  CHECK(product.to_vector<float>() == matmul(clone(view), numbers({1, 4, 2}, kFloat32, 1), {}).to_vector<float>());
  // Leading dimensions that are missing, or 1, stand for all.
  const Tensor batches = numbers({3, 2, 4, 5}, kFloat64);
  for (const Shape& sizes : {Shape{5, 6}, Shape{1, 5, 6}, Shape{2, 5, 6}, Shape{3, 1, 5, 6}, Shape{1, 2, 5, 6}}) {
    CAPTURE(to_string(sizes));
    const Tensor b = numbers(sizes, kFloat64, 2);
    const Tensor all = view::expand(b, {3, 2, 5, 6});
    const Tensor both[] = {matmul(batches, b, {}), matmul(b, batches, {.transpose_a = true, .transpose_b = true})};
    REQUIRE(both[0].sizes() == Shape{3, 2, 4, 6});
    REQUIRE(both[1].sizes() == Shape{3, 2, 6, 4});
    int64_t wrong = 0;
    for (int64_t batch = 0; batch < 6; ++batch) {
      for (int64_t i = 0; i < 4; ++i) {
        for (int64_t j = 0; j < 6; ++j) {
          double expected = 0;
          for (int64_t l = 0; l < 5; ++l)
            expected += at(batches, (batch * 4 + i) * 5 + l) * at(all, (batch * 5 + l) * 6 + j);
          wrong += at(both[0], (batch * 4 + i) * 6 + j) != expected || at(both[1], (batch * 6 + j) * 4 + i) != expected;
        }
      }
    }
    CHECK(wrong == 0);
  }
  CHECK_THROWS_WITH_AS(matmul(zeros({2, 3}), zeros({4, 5}), {}),
                       doctest::Contains("mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"), ShapeError);
  CHECK_THROWS_AS(matmul(zeros({2, 3}), zeros({3, 2}, kFloat64), {}), DTypeError);
}

TEST_CASE("sums, means and extremes over any dimensions") {
  for (const DType dtype : {kFloat64, kFloat32, kInt64, kInt32, kUInt8, kBool}) {
    const Tensor x = numbers({3, 4, 5}, dtype);
    for (const Shape& dims : std::vector<Shape>{{}, {0}, {1}, {2}, {0, 2}, {1, 2}, {-1, 0, 1}}) {
      const Tensor result = sum(x, {.dims = dims, .keepdim = true});
      std::vector<double> expected(static_cast<size_t>(result.numel()), 0.0);
      for (int64_t i = 0; i < 60; ++i) {
        const int64_t index[] = {i / 20, i / 5 % 4, i % 5};
        int64_t position = 0;
        for (int d = 0; d < 3; ++d)
          position = position * result.sizes()[d] + (result.sizes()[d] == 1 ? 0 : index[d]);
        expected[static_cast<size_t>(position)] += at(x, i);
      }
      CAPTURE(name(dtype));
      CAPTURE(to_string(dims));
      CHECK(result.to_vector<double>() == expected);
      CHECK(result.dtype() == (is_floating_point(dtype) ? dtype : kInt64));
    }
  }
  // Pairwise summation: ten million times 0.1 in float32.
  CHECK(at(sum(full({10'000'000}, 0.1), {}), 0) == doctest::Approx(1e6).epsilon(1e-6));
  const Tensor tall = full({100'000, 3}, 0.1);
  CHECK(at(sum(tall, {.dims = {0}}), 2) == doctest::Approx(1e4).epsilon(1e-6));
  CHECK(at(mean(numbers({5}, kFloat32), {}), 0) == doctest::Approx(at(sum(numbers({5}, kFloat32), {}), 0) / 5));
  const Extremes high = max(tensor(std::vector<float>{1, 5, 5, -1, std::nanf(""), 9}, {2, 3}), 1, false);
  CHECK(high.indices.to_vector<int64_t>() == std::vector<int64_t>{1, 1});
  CHECK(at(high.values, 0) == 5);
  CHECK(min(numbers({4, 3}, kInt64), 0, true).values.sizes() == Shape{1, 3});
  CHECK_THROWS_AS(max(zeros({2, 0}), 1, false), ShapeError);
  CHECK_THROWS_AS(sum(zeros({2, 2}), {.dims = {0, -2}}), ShapeError);
  CHECK(sum_to(ones({2, 3, 4}), {3, 1}).to_vector<float>() == std::vector<float>{8, 8, 8});
}

TEST_CASE("random fills follow the documented stream and have the right moments") {
  Generator generator(11);
  const Tensor u = rand({100'001}, kFloat32, &generator);
  const PhiloxState state{11, 0};
  for (const int64_t i : {int64_t{0}, int64_t{5}, int64_t{100'000}})
    CHECK(at(u, i) == uniform_from_word(state.word(static_cast<uint64_t>(i))));
  CHECK(at(mean(u, {}), 0) == doctest::Approx(0.5).epsilon(0.01));
  Generator again(11);
  CHECK(rand({100'001}, kFloat32, &again).to_vector<float>() == u.to_vector<float>());
  const Tensor z = randn({100'000}, kFloat64, &generator);
  CHECK(std::abs(at(mean(z, {}), 0)) < 0.02);
  CHECK(at(mean(binary(z, z, BinaryOp::Mul), {}), 0) == doctest::Approx(1).epsilon(0.02));
  const auto order = randperm(100, &generator).to_vector<int64_t>();
  std::vector<int> seen(100, 0);
  for (const int64_t i : order)
    ++seen[static_cast<size_t>(i)];
  CHECK(seen == std::vector<int>(100, 1));
  for (const int64_t i : randint(-2, 3, {1000}, kInt64, &generator).to_vector<int64_t>())
    CHECK((i >= -2 && i < 3));
  CHECK(arange(1, 2, 0.25, kFloat32).to_vector<float>() == std::vector<float>{1, 1.25, 1.5, 1.75});
  CHECK_THROWS_AS(arange(0, 1, -1), ValueError);
  CHECK(linspace(0, 1, 5).to_vector<float>() == std::vector<float>{0, 0.25, 0.5, 0.75, 1});
  CHECK(linspace(3, 10, 1).to_vector<float>() == std::vector<float>{3});
  CHECK(linspace(0, 10, 4, kInt64).to_vector<int64_t>() == std::vector<int64_t>{0, 3, 6, 10});
  CHECK(linspace(1, 0.1, 10, kFloat64).to_vector<double>().back() == 0.1);
  CHECK(linspace(1, 0, 0).sizes() == Shape{0});
  CHECK_THROWS_AS(linspace(0, 1, -1), ValueError);
  CHECK(eye(2, 3).to_vector<float>() == std::vector<float>{1, 0, 0, 0, 1, 0});
  CHECK(eye(2, kInt64).to_vector<int64_t>() == std::vector<int64_t>{1, 0, 0, 1});
  CHECK_THROWS_AS(eye(-1), ValueError);
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
