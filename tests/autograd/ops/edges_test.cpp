// Edge cases of operations: empty dimensions, no dimensions, NaN, -0, extreme values. Expected values are PyTorch
// 2.15's.
#include <near.h>

#include <brigade/autograd/backward.h>
#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace brigade::test::edges_test {
using test::check_near;

namespace {

using Values = std::vector<double>;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr DType kFloats[] = {kFloat64, kFloat32, kFloat16, kBFloat16};
Values values(const Tensor& x) { return x.to_vector<double>(); }
Tensor number(double value) { return full({}, value, kFloat64).requires_grad_(); }
Tensor row(std::initializer_list<double> numbers) { return tensor<double>(numbers).requires_grad_(); }

}  // namespace

TEST_CASE("a linear layer without outputs, without inputs, and of no rows") {
  struct Sizes {
    int64_t rows, in, out;
  };
  for (const auto& [rows, in, out] : {Sizes{2, 3, 0}, Sizes{3, 0, 2}, Sizes{0, 3, 2}, Sizes{0, 0, 0}}) {
    CAPTURE(rows);
    CAPTURE(in);
    CAPTURE(out);
    for (const DType dtype : kFloats) {
      const Tensor x = ones({rows, in}, dtype).requires_grad_();
      const Tensor weight = ones({out, in}, dtype).requires_grad_();
      const Tensor bias = ones({out}, dtype).requires_grad_();
      const Tensor y = linear(x, weight, bias);
      CHECK(y.sizes() == Shape{rows, out});
      for (const double value : values(y))
        CHECK(value == 1);
      y.sum().backward();
      CHECK(x.grad().sizes() == x.sizes());
      CHECK(weight.grad().sizes() == weight.sizes());
      CHECK(values(x.grad()) == Values(static_cast<size_t>(rows * in), 0));
      CHECK(values(weight.grad()) == Values(static_cast<size_t>(out * in), 0));
      CHECK(values(bias.grad()) == Values(static_cast<size_t>(out), static_cast<double>(rows)));
    }
  }
}

TEST_CASE("a bias of half types is added before the product is rounded") {
  // 65536 + 24 - 65536 is 24; if the product were rounded to bfloat16 first, the 24 would be lost.
  const Tensor x = tensor<float>({256, 1}).to(kBFloat16).reshape({1, 2});
  const Tensor weight = tensor<float>({256, 24}).to(kBFloat16).reshape({1, 2});
  const Tensor bias = full({1}, -65536, kBFloat16);
  CHECK(values(linear(x, weight, bias)) == Values{24});
  const Tensor half = tensor<float>({2048, 1}).to(kFloat16).reshape({1, 2});
  const Tensor ones_of_half = ones({1, 2}, kFloat16);
  CHECK(values(linear(half, ones_of_half, full({1}, -2048, kFloat16))) == Values{1});
}

TEST_CASE("a tensor without dimensions has one slice, itself") {
  for (const Tensor& index : {tensor<int64_t>({0}), zeros({}, kInt64), tensor<int32_t>({0})}) {
    CAPTURE(describe(index));
    const Tensor x = number(2), s = number(3);
    const Tensor chosen = index_select(x, 0, index);
    CHECK(chosen.sizes() == Shape{});
    chosen.backward();
    CHECK(values(x.grad()) == Values{1});
    x.set_grad({});
    const Tensor sum = index_add(x, 0, index, s);
    CHECK(values(sum) == Values{5});
    sum.backward();
    CHECK(values(x.grad()) == Values{1});
    CHECK(values(s.grad()) == Values{1});
    x.set_grad({});
    s.set_grad({});
    const Tensor copy = index_copy(x, 0, index, s);
    CHECK(values(copy) == Values{3});
    copy.backward();
    CHECK(values(x.grad()) == Values{0});
    CHECK(values(s.grad()) == Values{1});
    CHECK(values(index_fill(x, 0, index, 5)) == Values{5});
  }
  CHECK_THROWS_WITH_AS(index_select(number(2), 0, tensor<int64_t>({0, 0})), doctest::Contains("has one element"),
                       ShapeError);
  CHECK_THROWS_AS(index_select(number(2), 0, tensor<int64_t>({1})), IndexError);
  CHECK_THROWS_AS(index_add(number(2), 0, tensor<int64_t>({0}), row({3})), ShapeError);
}

TEST_CASE("index_select by one number; index_copy of a number into a row, and of a row of one into a number") {
  const Tensor x = tensor<double>({1, 2, 3, 4}).reshape({2, 2}).requires_grad_();
  const Tensor second = index_select(x, 0, ones({}, kInt64));
  CHECK(second.sizes() == Shape{1, 2});
  CHECK(values(second) == Values{3, 4});
  second.sum().backward();
  CHECK(values(x.grad()) == Values{0, 0, 1, 1});
  const Tensor base = row({2, 1}), s = number(3);
  const Tensor written = index_copy(base, 0, tensor<int64_t>({1}), s);
  CHECK(values(written) == Values{2, 3});
  written.sum().backward();
  CHECK(values(base.grad()) == Values{1, 0});
  CHECK(s.grad().sizes() == Shape{});
  CHECK(values(s.grad()) == Values{1});
  const Tensor single = number(2), one = row({3});
  index_copy(single, 0, tensor<int64_t>({0}), one).backward();
  CHECK(values(single.grad()) == Values{0});
  CHECK(values(one.grad()) == Values{1});
}

TEST_CASE("indices may be int32") {
  const Tensor index = tensor<int32_t>({2, 0});
  const Tensor x = row({1, 2, 3});
  CHECK(values(index_select(x, 0, index)) == Values{3, 1});
  CHECK(values(gather(x, 0, index)) == Values{3, 1});
  CHECK(values(scatter(x, 0, index, 9.0)) == Values{9, 2, 9});
  CHECK(values(scatter(x, 0, index, row({7, 8}))) == Values{8, 2, 7});
  CHECK(values(scatter_add(x, 0, index, row({7, 8}))) == Values{9, 2, 10});
  CHECK(values(index_add(x, 0, index, row({7, 8}))) == Values{9, 2, 10});
  CHECK(values(embedding(index, x.reshape({3, 1}))) == Values{3, 1});
  (gather(x, 0, index).sum() + index_select(x, 0, index).sum() + embedding(index, x.reshape({3, 1})).sum()).backward();
  CHECK(values(x.grad()) == Values{3, 0, 3});
  CHECK_THROWS_AS(index_select(x, 0, tensor<uint8_t>({0})), DTypeError);
  CHECK_THROWS_WITH_AS(index_select(x, 0, tensor<int32_t>({3})), doctest::Contains("3"), IndexError);
}

TEST_CASE("the absolute value of -0 is 0") {
  for (const DType dtype : kFloats) {
    CAPTURE(std::string(name(dtype)));
    for (const int64_t count : {2, 100}) {
      for (const double value : values(abs(full({count}, -0.0, dtype))))
        CHECK_FALSE(std::signbit(value));
    }
  }
}

TEST_CASE("mish of large numbers is the number, with a slope of 1") {
  for (const DType dtype : {kFloat64, kFloat32}) {
    CAPTURE(std::string(name(dtype)));
    const Values at{19.9, 20, 20.1, 1e4, 1e14, 1e15, 1e20, 1e30, 3e38, -1e4, -1e15};
    const Tensor x = tensor(at, {static_cast<int64_t>(at.size())}).to(dtype).requires_grad_();
    const Tensor y = mish(x);
    y.sum().backward();
    for (size_t i = 0; i < at.size(); ++i) {
      CAPTURE(at[i]);
      CHECK(values(y)[i] == (at[i] > 0 ? values(x)[i] : 0));
      CHECK(values(x.grad())[i] == doctest::Approx(at[i] > 0 ? 1 : 0));
    }
  }
}

TEST_CASE("the gradient of an activation at NaN") {
  // Matches PyTorch's vectorized loops; for most of these, its scalar loops and its GPU kernels pass the gradient
  // through.
  struct Row {
    const char* name;
    Tensor (*apply)(const Tensor& x);
    double slope;
  };
  const Row rows[] = {
      {"elu", [](const Tensor& x) { return elu(x); }, kNaN},
      {"celu", [](const Tensor& x) { return celu(x); }, kNaN},
      {"selu", [](const Tensor& x) { return selu(x); }, kNaN},
      {"hardswish", [](const Tensor& x) { return hardswish(x); }, kNaN},
      {"relu6", [](const Tensor& x) { return relu6(x); }, 0},
      {"hardtanh", [](const Tensor& x) { return hardtanh(x); }, 0},
      {"softshrink", [](const Tensor& x) { return softshrink(x); }, 0},
      {"hardshrink", [](const Tensor& x) { return hardshrink(x); }, 0},
      {"hardsigmoid", [](const Tensor& x) { return hardsigmoid(x); }, 0},
      {"relu", [](const Tensor& x) { return relu(x); }, 1},
      {"leaky_relu", [](const Tensor& x) { return leaky_relu(x, 0.25); }, 0.25},
      {"softplus", [](const Tensor& x) { return softplus(x); }, kNaN},
      {"mish", [](const Tensor& x) { return mish(x); }, kNaN},
      {"clamp", [](const Tensor& x) { return clamp(x, -1, 1); }, 0},
      {"abs", [](const Tensor& x) { return abs(x); }, 0},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.name));
    for (const DType dtype : kFloats) {
      CAPTURE(std::string(name(dtype)));
      for (const bool create_graph : {false, true}) {
        CAPTURE(create_graph);
        for (const int64_t count : {1, 70}) {
          const Tensor x = full({count}, kNaN, dtype).requires_grad_();
          const Tensor y = row.apply(x);
          CHECK(std::isnan(values(y).back()));
          y.sum().backward({.create_graph = create_graph});
          const double slope = values(x.grad()).back();
          CAPTURE(slope);
          CHECK((std::isnan(row.slope) ? std::isnan(slope) : slope == row.slope));
          x.set_grad(Tensor());  // a gradient with a history and its tensor own each other
        }
      }
    }
  }
}

TEST_CASE("a sequence interpolated to the nearest element goes by the scale that was given, not by the sizes") {
  struct Row {
    double scale_factor;
    int64_t size;
    Values values;
  };
  for (const auto& [scale_factor, size, expected] :
       {Row{1.5, 5, {0, 0, 1, 2, 2, 3, 4}}, Row{2.5, 5, {0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 4, 4}},
        Row{0.7, 7, {0, 1, 2, 4}}, Row{1.1, 7, {0, 0, 1, 2, 3, 4, 5}}, Row{1.3, 7, {0, 0, 1, 2, 3, 3, 4, 5, 6}},
        Row{2.01, 7, {0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6}}, Row{1, 3, {0, 1, 2}}, Row{2, 2, {0, 0, 1, 1}},
        Row{1.0999999, 10, {0, 0, 1, 2, 3, 4, 5, 6, 7, 8}}}) {
    CAPTURE(scale_factor);
    const Tensor x = arange(0, static_cast<double>(size), 1, kFloat64).reshape({1, 1, size}).requires_grad_();
    const Tensor y = interpolate(x, {.scale_factor = std::vector<double>{scale_factor}});
    CHECK(values(y) == expected);
    // Each output adds its gradient to the element that it was copied from.
    const Tensor slopes = arange(1, static_cast<double>(expected.size()) + 1, 1, kFloat64).reshape(y.sizes());
    (y * slopes).sum().backward();
    Values sums(static_cast<size_t>(size), 0);
    for (size_t i = 0; i < expected.size(); ++i)
      sums[static_cast<size_t>(expected[i])] += static_cast<double>(i + 1);
    CHECK(values(x.grad()) == sums);
  }
}

TEST_CASE("an image whose size is kept or doubled by an odd factor is copied or doubled, a dimension at a time") {
  const Tensor x = arange(0, 6, 1, kFloat64).reshape({1, 1, 2, 3});
  const auto scaled = [&](double rows, double columns) {
    return values(interpolate(x, {.scale_factor = std::vector<double>{rows, columns}}));
  };
  CHECK(scaled(1.2, 1.2) == Values{0, 1, 2, 3, 4, 5});
  CHECK(scaled(2.3, 1.2) == Values{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5});
  CHECK(scaled(1.2, 2.3) == Values{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5});
  CHECK(scaled(1.2, 1.7) == Values{0, 0, 1, 1, 2, 3, 3, 4, 4, 5});
}

TEST_CASE("a row of equal numbers, however far from zero, is normalised to zeros") {
  for (const double value : {0.1, 12345.678, 1e6 + 0.1, -3e7}) {
    CAPTURE(value);
    for (const int64_t width : {1, 4, 7, 100, 1000}) {
      CAPTURE(width);
      const Tensor x = full({3, width}, value);
      for (const double y : values(layer_norm(x, {width}, {}, {})))
        CHECK(y == 0);
      for (const double y : values(group_norm(x.reshape({3, width, 1}), 1, {}, {})))
        CHECK(y == 0);
      if (width == 1) continue;
      for (const double y : values(batch_norm(x.t(), {}, {}, {}, {}, true)))
        CHECK(y == 0);
      CHECK(values(var(x, {1})) == Values{0, 0, 0});
    }
  }
}

TEST_CASE("t of fewer than two dimensions is a view of the same shape") {
  const Tensor x = row({1, 2, 3});
  const Tensor y = x.t();
  CHECK(y.sizes() == Shape{3});
  CHECK(y.storage().get() == x.storage().get());
  (y * tensor<double>({1, 2, 3})).sum().backward();
  CHECK(values(x.grad()) == Values{1, 2, 3});
  CHECK(number(2).t().sizes() == Shape{});
  CHECK_THROWS_WITH_AS(ones({1, 2, 3}).t(), doctest::Contains("t() expects a tensor with <= 2 dimensions"), ShapeError);
}

TEST_CASE("batch_norm takes weights and statistics that are not contiguous, and moves the latter in place") {
  const Tensor x = arange(0, 8, 1, kFloat32).reshape({2, 4});
  const auto strided = [](double value) { return full({8}, value).slice(0, 0, 8, 2); };
  const Tensor weight = strided(1.5).detach().requires_grad_(), bias = strided(0.25).detach().requires_grad_();
  const Tensor mean = strided(0), variance = strided(1);
  const Tensor y = batch_norm(x, weight, bias, mean, variance, true);
  const Tensor dense_weight = full({4}, 1.5).requires_grad_(), dense_bias = full({4}, 0.25).requires_grad_();
  const Tensor dense_mean = zeros({4}), dense_variance = ones({4});
  const Tensor expected = batch_norm(x, dense_weight, dense_bias, dense_mean, dense_variance, true);
  CHECK(values(y) == values(expected));
  CHECK(values(mean) == values(dense_mean));
  CHECK(values(mean)[0] == doctest::Approx(0.2));
  CHECK(values(variance) == values(dense_variance));
  const Tensor slopes = arange(1, 9, 1, kFloat32).reshape({2, 4});
  (y * slopes).sum().backward();
  (expected * slopes).sum().backward();
  CHECK(values(weight.grad()) == values(dense_weight.grad()));
  CHECK(values(bias.grad()) == values(dense_bias.grad()));
  CHECK(values(batch_norm(x, weight, bias, mean, variance, false)) ==
        values(batch_norm(x, dense_weight, dense_bias, dense_mean, dense_variance, false)));
}

TEST_CASE("uint8 is computed with as other integers are, and wraps around") {
  const Tensor x = tensor<uint8_t>({200, 3});
  CHECK(values(-x) == Values{56, 253});
  CHECK(values(abs(x)) == Values{200, 3});
  CHECK(values(sign(x)) == Values{1, 1});
  CHECK(values(square(x)) == Values{64, 9});
  CHECK(values(x * x) == Values{64, 9});
  CHECK(values(x - 4) == Values{196, 255});
  CHECK(values(4 - x) == Values{60, 1});
  CHECK(values(x + 100) == Values{44, 103});
  CHECK(values(x * -1) == Values{56, 253});
  CHECK(values(x * 300) == Values{96, 132});
  CHECK(values(pow(x, 2)) == Values{64, 9});
  CHECK(values(remainder(x, 7)) == Values{4, 3});
  CHECK(values(fmod(x, 7)) == Values{4, 3});
  CHECK(values(clamp(x, 5, 100)) == Values{100, 5});
  CHECK(values(maximum(x, tensor<uint8_t>({5, 5}))) == Values{200, 5});
  CHECK(values(x.sum()) == Values{203});
  CHECK((-x).dtype() == kUInt8);
  CHECK(values(x / 2) == Values{100, 1.5});
}

TEST_CASE("bool has a square and a sign, but no absolute value and no opposite") {
  const Tensor x = tensor<bool>({true, false});
  CHECK(square(x).dtype() == kInt64);
  CHECK(values(square(x)) == Values{1, 0});
  CHECK(sign(x).dtype() == kBool);
  CHECK_THROWS_AS(abs(x), DTypeError);
  CHECK_THROWS_WITH_AS(-x, doctest::Contains("logical_not"), DTypeError);
}

TEST_CASE("integers have matrix products, which wrap around") {
  const Tensor a = arange(0, 4).reshape({2, 2});
  for (const DType dtype : {kInt64, kInt32, kUInt8}) {
    CAPTURE(std::string(name(dtype)));
    const Tensor x = a.to(dtype);
    CHECK(matmul(x, x).dtype() == dtype);
    CHECK(values(matmul(x, x)) == Values{2, 3, 6, 11});
    CHECK(values(matmul(x.t(), x)) == Values{4, 6, 6, 10});
    CHECK(values(matmul(x, x.t())) == Values{1, 3, 3, 13});
    CHECK(values(bmm(x.unsqueeze(0), x.unsqueeze(0))) == Values{2, 3, 6, 11});
    CHECK(values(mv(x, x.select(0, 0))) == Values{1, 3});
    CHECK(values(dot(x.select(0, 1), x.select(0, 1))) == Values{13});
    CHECK(values(linear(x, x)) == Values{1, 3, 3, 13});
    CHECK(values(linear(x, x, x.select(0, 0))) == Values{1, 4, 3, 14});
    CHECK(values(einsum("ij,jk->ik", {x, x})) == Values{2, 3, 6, 11});
    CHECK(values(addmm(x, x, x)) == Values{2, 4, 8, 14});
  }
  const Tensor bytes = (a * 100).to(kUInt8);
  CHECK(values(matmul(bytes, bytes)) == Values{32, 48, 96, 176});
  CHECK_THROWS_AS(matmul(a, a.to(kFloat32)), DTypeError);
  CHECK_THROWS_AS(matmul(a.to(kBool), a.to(kBool)), DTypeError);
}

TEST_CASE("the gradient of an infinity norm has the precision of its dtype") {
  const Tensor x = row({1, 3, 3, -3});
  norm(x, INFINITY).backward();
  CHECK(values(x.grad()) == Values{0, 1.0 / 3, 1.0 / 3, -1.0 / 3});
}

TEST_CASE("chunk gives as many parts of nothing as were asked for; split gives one") {
  const Tensor x = zeros({2, 0}, kFloat64).requires_grad_();
  const std::vector<Tensor> parts = chunk(x, 3, 1);
  REQUIRE(parts.size() == 3);
  for (const Tensor& part : parts)
    CHECK(part.sizes() == Shape{2, 0});
  parts[2].sum().backward();
  CHECK(x.grad().sizes() == x.sizes());
  CHECK(split(x, 5, 1).size() == 1);
  CHECK(chunk(ones({5}), 3)[2].numel() == 1);
  CHECK(chunk(ones({4}), 3).size() == 2);
}

TEST_CASE("a bool tensor is not subtracted, nor subtracted from; in place it is added with alpha 1 only") {
  const Tensor mask = tensor<bool>({true, false}), x = tensor<double>({3, 4});
  const auto refuses = [](const std::function<void()>& call) {
    CHECK_THROWS_WITH_AS(call(), doctest::Contains("Subtraction, the `-` operator, with a bool tensor"), DTypeError);
  };
  refuses([&] { x - mask; });
  refuses([&] { mask - x; });
  refuses([&] { mask - mask; });
  refuses([&] { 1.0 - mask; });
  refuses([&] { mask - 1.0; });
  refuses([&] { sub_(x, mask); });
  CHECK_THROWS_AS(mask.add_(mask, -1), DTypeError);
  CHECK(values(mask.add_(tensor<bool>({true, true}))) == Values{1, 1});
}

TEST_CASE("a tensor without dimensions is filled as often as an index names it") {
  CHECK(index_fill(full({}, 5, kFloat64), 0, tensor<int64_t>({0, 0}), -1).item<double>() == -1);
  CHECK_THROWS_AS(index_add(full({}, 5, kFloat64), 0, tensor<int64_t>({0, 0}), ones({2}, kFloat64)), ShapeError);
}

TEST_CASE("the mean that var_mean gives may be written to before backward") {
  const Tensor x = row({1, 2, 6});
  const SpreadAndMean found = var_mean(x, {}, 0);
  found.mean.mul_(5);
  (found.spread + found.mean).backward();
  const Values expected{2 * -2.0 / 3 + 5.0 / 3, 2 * -1.0 / 3 + 5.0 / 3, 2 * 3.0 / 3 + 5.0 / 3};
  check_near(x.grad(), expected, 1e-14);
}

TEST_CASE("index_select gives dense memory along every dimension") {
  const Tensor x = arange(0, 6, 1, kFloat64).reshape({2, 3});
  const Tensor y = index_select(x, 1, tensor<int64_t>({2, 0}));
  CHECK(y.is_contiguous());
  CHECK(values(y) == Values{2, 0, 5, 3});
}

TEST_CASE("what a backward does not read is not kept for it") {
  const Tensor x = row({1, 2});
  const Tensor a = tensor<double>({3, 4}), b = tensor<double>({5, 6}), index = tensor<int64_t>({0, 1});
  const auto twice = [](const Tensor& y) {
    y.sum().backward();
    y.sum().backward();
  };
  twice(addcmul(x, a, b));
  twice(addcdiv(x, a, b));
  twice(index_add(x, 0, index, a));
  twice(scatter_add(x, 0, index, a));
  twice(remainder(x, a));
  CHECK(values(x.grad()) == Values{10, 10});
  const Tensor factor = row({3, 4});
  addcmul(a, factor, b).sum().backward();
  addcdiv(a, b, factor).sum().backward();
  check_near(factor.grad(), {5 - 5.0 / 9, 6 - 6.0 / 16}, 1e-14);
}

TEST_CASE("batch_norm and instance_norm keep both running statistics or neither") {
  const Tensor x = ones({3, 2}), statistics = zeros({2});
  CHECK_THROWS_WITH_AS(instance_norm(x.reshape({1, 2, 3}), statistics), doctest::Contains("either both"), ValueError);
  CHECK_THROWS_WITH_AS(instance_norm(x.reshape({1, 2, 3}), {}, statistics), doctest::Contains("either both"),
                       ValueError);
  for (const bool training : {false, true}) {
    CHECK_THROWS_WITH_AS(batch_norm(x, {}, {}, statistics, {}, training), doctest::Contains("only running_mean"),
                         ValueError);
    CHECK_THROWS_WITH_AS(batch_norm(x, {}, {}, {}, statistics, training), doctest::Contains("only running_var"),
                         ValueError);
  }
}

TEST_CASE("a shuffle by 1 gives a copy, and what has no dimension is flattened along 0 and -1 only") {
  const Tensor x = ones({1, 2, 2}, kFloat64);
  pixel_shuffle(x, 1).fill_(7);
  pixel_unshuffle(x, 1).fill_(7);
  CHECK(values(x) == Values{1, 1, 1, 1});
  CHECK(full({}, 3.0).flatten(0, -1).sizes() == Shape{1});
  CHECK_THROWS_AS(full({}, 3.0).flatten(1), IndexError);
  CHECK_THROWS_AS(full({}, 3.0).flatten(-3, -2), IndexError);
}

}  // namespace brigade::test::edges_test
