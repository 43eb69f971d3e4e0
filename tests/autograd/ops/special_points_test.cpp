// Gradients where derivatives jump or do not exist, and errors: values of PyTorch 2.15.
#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace brigade::test::special_points_test {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor leaf(std::vector<double> values) {
  const auto count = static_cast<int64_t>(values.size());
  return tensor(values, {count}).requires_grad_();
}
std::vector<double> numbers(const Tensor& x) { return x.to_vector<double>(); }

template <class F>
std::vector<double> slopes(F&& f, std::vector<double> at) {
  const Tensor x = leaf(std::move(at));
  f(x).sum().backward();
  return numbers(x.grad());
}

bool same(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && !(std::isnan(a[i]) && std::isnan(b[i]))) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("clamp has no gradient beyond its borders nor on them") {
  CHECK(slopes([](const Tensor& x) { return clamp(x, -1, 1); }, {-1, 0, 1, kNaN, 2}) ==
        std::vector<double>{0, 1, 0, 0, 0});
  CHECK(slopes([](const Tensor& x) { return clamp_min(x, -1); }, {-1, 0, -2, kInfinity}) ==
        std::vector<double>{0, 1, 0, 1});
  CHECK(slopes([](const Tensor& x) { return clamp_max(x, -1); }, {-1, 0, -2, -kInfinity}) ==
        std::vector<double>{0, 0, 1, 1});
  CHECK(slopes([](const Tensor& x) { return clamp(x, kNaN); }, {-1, 1}) == std::vector<double>{0, 0});
  CHECK_THROWS_WITH_AS(clamp(ones({2}), std::nullopt), doctest::Contains("expected a min, a max or both"), ValueError);
  CHECK_THROWS_AS(clamp(ones({2}), Tensor()), ValueError);
}

TEST_CASE("clamp between tensors shares the gradient where x is on a border, and gives it to max where borders cross") {
  // x, min, max and their gradients
  const std::vector<std::array<double, 6>> rows{{0, 0, 0, 1, 0, 0},    {0, 0, 1, 0.5, 0.5, 0},  {0, 1, 0, 0, 0, 1},
                                                {0, 1, 1, 0, 1, 0},    {0, 1, 2, 0, 1, 0},      {0, 2, 1, 0, 0, 1},
                                                {1, 0, 0, 0, 0, 1},    {1, 0, 1, 0.5, 0, 0.5},  {1, 0, 2, 1, 0, 0},
                                                {1, 1, 0, 0, 0, 1},    {1, 2, 0, 0, 0, 1},      {2, 0, 1, 0, 0, 1},
                                                {2, 1, 0, 0, 0, 1},    {kNaN, 0, 1, 1, 0, 0},   {0, kNaN, 1, 1, 0, 0},
                                                {2, kNaN, 1, 0, 0, 0}, {0.5, 0, kNaN, 1, 0, 0}, {-1, 0, kNaN, 0, 0, 0}};
  for (const auto& row : rows) {
    CAPTURE(row[0]);
    CAPTURE(row[1]);
    CAPTURE(row[2]);
    const Tensor x = leaf({row[0]}), low = leaf({row[1]}), high = leaf({row[2]});
    clamp(x, low, high).sum().backward();
    CHECK(numbers(x.grad())[0] == row[3]);
    CHECK(numbers(low.grad())[0] == row[4]);
    CHECK(numbers(high.grad())[0] == row[5]);
  }
}

TEST_CASE("maximum and minimum share the gradient of equals; a NaN gives it to both") {
  const Tensor x = leaf({-1, 1, -2, kNaN}), y = leaf({-1, -1, -1, 0});
  maximum(x, y).sum().backward();
  CHECK(numbers(x.grad()) == std::vector<double>{0.5, 1, 0, 1});
  CHECK(numbers(y.grad()) == std::vector<double>{0.5, 0, 1, 1});
  x.set_grad({});
  y.set_grad({});
  minimum(x, y).sum().backward();
  CHECK(numbers(x.grad()) == std::vector<double>{0.5, 0, 1, 1});
  CHECK(numbers(y.grad()) == std::vector<double>{0.5, 1, 0, 1});
}

TEST_CASE("powers at 0") {
  const auto power = [](double exponent) { return [exponent](const Tensor& x) { return pow(x, exponent); }; };
  CHECK(slopes(power(0), {0, 1, kNaN})[0] == 0);
  CHECK(slopes(power(0.5), {0, 1}) == std::vector<double>{kInfinity, 0.5});
  CHECK(slopes(power(1), {0, 1}) == std::vector<double>{1, 1});
  CHECK(slopes(power(2), {0, 1}) == std::vector<double>{0, 2});
  const auto of = [](double base) { return [base](const Tensor& x) { return pow(base, x); }; };
  CHECK(slopes(of(0), {0, 1, -1}) == std::vector<double>{0, 0, -kInfinity});
  CHECK(same(slopes(of(-2), {0, 1}), {kNaN, kNaN}));
  const Tensor x = leaf({0, 0, 2}), y = leaf({0, -1, 0});
  const Tensor z = pow(x, y);
  CHECK(numbers(z) == std::vector<double>{1, kInfinity, 1});
  z.sum().backward();
  CHECK(numbers(x.grad()) == std::vector<double>{0, -kInfinity, 0});
  CHECK(same(numbers(y.grad()), {0, -kInfinity, std::log(2.0)}));
  CHECK(numbers(pow(tensor<int64_t>({2, -3}), 3)) == std::vector<double>{8, -27});
  CHECK_THROWS_AS(pow(tensor<bool>({true}), -1.0), DTypeError);
  CHECK_THROWS_WITH_AS(pow(tensor<int64_t>({2}), -1),
                       doctest::Contains("integers have no integer power below 0 (got -1)"), ValueError);
}

TEST_CASE("poles, kinks and steps of other functions") {
  CHECK(slopes([](const Tensor& x) { return rsqrt(x); }, {0, 1})[0] == -kInfinity);
  CHECK(slopes([](const Tensor& x) { return brigade::asin(x); }, {1, -1}) == std::vector<double>{kInfinity, kInfinity});
  CHECK(slopes([](const Tensor& x) { return brigade::acos(x); }, {1}) == std::vector<double>{-kInfinity});
  CHECK(slopes([](const Tensor& x) { return brigade::log1p(x); }, {-1}) == std::vector<double>{kInfinity});
  CHECK(slopes([](const Tensor& x) { return abs(x); }, {0, -2}) == std::vector<double>{0, -1});
  CHECK(slopes([](const Tensor& x) { return brigade::atan2(x, zeros({2}, kFloat64)); }, {0, 1}) ==
        std::vector<double>{0, 0});
  for (const auto& step : {brigade::floor, brigade::ceil, brigade::round, brigade::trunc})
    CHECK(slopes([&](const Tensor& x) { return step(x, {}); }, {0.5, 1}) == std::vector<double>{0, 0});
  CHECK(numbers(brigade::floor(tensor<int64_t>({3}))) == std::vector<double>{3});
  CHECK(slopes([](const Tensor& x) { return prelu(x, full({1}, 0.25, kFloat64)); }, {0, -1, kNaN}) ==
        std::vector<double>{0.25, 0.25, 0.25});
  CHECK(slopes([](const Tensor& x) { return selu(x); }, {0})[0] == doctest::Approx(1.7580993408473766));
  CHECK(slopes([](const Tensor& x) { return relu6(x); }, {0, 3, 6, kNaN}) == std::vector<double>{0, 1, 0, 0});
  const Tensor a = leaf({3, -3, 5}), b = leaf({2, 2, -3});
  remainder(a, b).sum().backward();
  CHECK(numbers(b.grad()) == std::vector<double>{-1, 2, 2});
  b.set_grad({});
  brigade::fmod(a, b).sum().backward();
  CHECK(numbers(b.grad()) == std::vector<double>{-1, 1, 1});
}

TEST_CASE("truth values of every kind of number") {
  const Tensor x = tensor<double>({0, 1, kNaN, kInfinity, -kInfinity, -0.0});
  const auto truth = [](const Tensor& y) {
    CHECK(y.dtype() == kBool);
    return y.to_vector<int>();
  };
  CHECK(truth(isnan(x)) == std::vector<int>{0, 0, 1, 0, 0, 0});
  CHECK(truth(isinf(x)) == std::vector<int>{0, 0, 0, 1, 1, 0});
  CHECK(truth(isfinite(x)) == std::vector<int>{1, 1, 0, 0, 0, 1});
  CHECK(truth(logical_not(x)) == std::vector<int>{1, 0, 0, 0, 0, 1});
  const Tensor y = tensor<int64_t>({0, 5});
  const Tensor z = tensor(std::vector<float>{0, 2}, {2, 1});
  CHECK(truth(logical_and(y, z)) == std::vector<int>{0, 0, 0, 1});
  CHECK(truth(logical_or(y, z)) == std::vector<int>{0, 1, 1, 1});
  CHECK(truth(logical_xor(y, z)) == std::vector<int>{0, 1, 1, 0});
  CHECK(truth(isfinite(y)) == std::vector<int>{1, 1});
  CHECK(truth(isinf(y.to(kBool))) == std::vector<int>{0, 0});
  CHECK(truth(isnan(y)) == std::vector<int>{0, 0});
}

TEST_CASE("choices: dtypes, and arguments that do not fit") {
  const Tensor mask = gt(tensor<float>({1, -1}), 0.0);
  CHECK(numbers(masked_fill(tensor<int64_t>({4, 5}), mask, 7)) == std::vector<double>{7, 5});
  CHECK(masked_fill(tensor<int64_t>({4, 5}), mask, 7).dtype() == kInt64);
  CHECK_THROWS_WITH_AS(masked_fill(tensor<int64_t>({4, 5}), mask, 0.5), doctest::Contains("int64 cannot hold 0.5"),
                       ValueError);
  CHECK_THROWS_AS(masked_fill(mask, mask, 2), ValueError);
  CHECK_THROWS_WITH_AS(brigade::where(ones({2}), ones({2}), 0.0), doctest::Contains("special_points_test.cpp"),
                       DTypeError);
  CHECK_THROWS_AS(masked_fill(ones({2}), gt(ones({3}), 0.0), 1), ShapeError);
  CHECK_THROWS_WITH_AS(celu(ones({1}), 0), doctest::Contains("alpha must not be 0"), ValueError);
  CHECK_THROWS_WITH_AS(softshrink(ones({1}), -1), doctest::Contains("lambda >= 0"), ValueError);
  CHECK_THROWS_AS(hardtanh(ones({1}), 1, -1), ValueError);
  CHECK_THROWS_WITH_AS(glu(ones({2, 3})), doctest::Contains("even size along dimension 1"), ShapeError);
  CHECK_THROWS_WITH_AS(prelu(ones({2, 3}), ones({2})), doctest::Contains("1 or 3 elements"), ShapeError);
}

TEST_CASE("the gradient of a soft margin does not vanish where the loss is small") {
  const std::vector<double> found = slopes([](const Tensor& x) { return soft_margin_loss(x, ones_like(x)); }, {80});
  CHECK(found[0] == doctest::Approx(-std::exp(-80.0)).epsilon(1e-12));
}

TEST_CASE("flattening one dimension gives the tensor itself, without recording too") {
  const Tensor x = ones({2, 3}).requires_grad_();
  const NoGradGuard guard;
  CHECK(x.flatten(1, 1).is_same(x));
  CHECK_FALSE(x.flatten(0, 1).is_same(x));
}

}  // namespace brigade::test::special_points_test
