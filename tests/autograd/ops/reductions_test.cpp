// Reductions as operations: gradients where the derivative is not unique (as in PyTorch), dtypes, errors.
#include "compositions.h"

#include <near.h>

#include <cmath>
#include <functional>
#include <limits>

namespace brigade::test::reductions_test {
using test::check_near;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

using Numbers = std::vector<double>;

Numbers gradient(const std::function<Tensor(const Tensor&)>& function, const Numbers& values, const Shape& sizes = {}) {
  const Tensor x =
      tensor<double>(values, sizes.empty() ? Shape{static_cast<int64_t>(values.size())} : sizes).requires_grad_();
  sum(function(x)).backward();
  return x.grad().to_vector<double>();
}

void check_close(const Numbers& found, const Numbers& expected) {
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    if (std::isnan(expected[i])) {
      CHECK(std::isnan(found[i]));
    } else {
      CHECK(found[i] == doctest::Approx(expected[i]).epsilon(1e-12));
    }
  }
}

}  // namespace

TEST_CASE("equals share the gradient of an extreme over dimensions, the first gets that along one dimension") {
  const Numbers x{1, 5, 5, 2, 2, 2};
  const Shape sizes{2, 3};
  check_close(gradient([](const Tensor& t) { return max(t); }, x), {0, 0.5, 0.5, 0, 0, 0});
  check_close(gradient([](const Tensor& t) { return min(t); }, {3, 1, 2, 1}), {0, 0.5, 0, 0.5});
  check_close(gradient([](const Tensor& t) { return amax(t, {1}); }, x, sizes),
              {0, 0.5, 0.5, 1 / 3.0, 1 / 3.0, 1 / 3.0});
  check_close(gradient([](const Tensor& t) { return amin(t, {0}, true); }, {4, 3, 4, 2}, {2, 2}), {0.5, 0, 0.5, 1});
  check_close(gradient([](const Tensor& t) { return max(t, 1).values; }, x, sizes), {0, 1, 0, 1, 0, 0});
  // As in PyTorch, max() gives the gradient to the NaN elements, and amax() does not.
  check_close(gradient([](const Tensor& t) { return max(t); }, {1, kNaN, 2, kNaN}), {0, 0.5, 0, 0.5});
  check_close(gradient([](const Tensor& t) { return amax(t); }, {1, kNaN}), {kNaN, kNaN});
}

TEST_CASE("places of extremes along a dimension and among all elements") {
  const Tensor x = tensor<float>({1, 5, 5, 2, 0, 7}, {2, 3});
  CHECK(argmax(x, 1).to_vector<int64_t>() == std::vector<int64_t>{1, 2});
  CHECK(argmin(x, -1, true).sizes() == Shape{2, 1});
  CHECK(argmin(x, 0).to_vector<int64_t>() == std::vector<int64_t>{0, 1, 0});
  CHECK(argmax(x).item<int64_t>() == 5);
  CHECK(argmin(x.t()).item<int64_t>() == 3);
  CHECK(argmax(x).sizes().empty());
  CHECK_THROWS_WITH_AS(argmax(zeros({0})), doctest::Contains("reductions_test.cpp:"), ShapeError);
  CHECK_THROWS_AS(amax(zeros({2, 0}), {1}), ShapeError);
  CHECK_THROWS_AS(max(zeros({0})), ShapeError);
}

TEST_CASE("the gradient of a norm at 0, among equals, and of each order") {
  const Numbers x{0, 3, -4};
  const auto order = [](double p) { return [p](const Tensor& t) { return norm(t, p); }; };
  for (const double p : {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, kInfinity, -kInfinity, -1.0}) {
    CAPTURE(p);
    check_close(gradient(order(p), {0, 0}), {0, 0});
  }
  check_close(gradient(order(0), x), {0, 0, 0});
  check_close(gradient(order(1), x), {0, 1, -1});
  check_close(gradient(order(2), x), {0, 0.6, -0.8});
  check_close(gradient(order(3), x), {0, 0.4448513517305356, -0.7908468475209521});
  check_close(gradient(order(1.5), x), {0, 0.7329564758289748, -0.8463452372482761});
  check_close(gradient(order(0.5), x), {0, 2.154700538379252, -1.8660254037844386});
  check_close(gradient(order(-1), {4, 3, -4}), {0.09, 0.16, -0.09});
  check_close(gradient(order(kInfinity), {3, -3, 1}), {0.5, -0.5, 0});
  check_close(gradient(order(-kInfinity), {4, 3, -4}), {0, 1, 0});
  check_close(gradient(order(kInfinity), {1, kNaN}), {0, 0});
  CHECK_THROWS_WITH_AS(norm(zeros({2, 0}), kInfinity, {1}), doctest::Contains("reductions_test.cpp:"), ShapeError);
  CHECK_THROWS_AS(matrix_norm(zeros({3})), ShapeError);
}

TEST_CASE("the cosine of huge vectors is that of their directions") {
  const Tensor x = tensor({3e38, 3e38}).requires_grad_();
  const Tensor y = cosine_similarity(x, tensor({3e38, -1e38}), 0);
  check_near(y, {1 / std::sqrt(5.0)}, 1e-6);
  y.backward();
  CHECK(std::isfinite(x.grad().sum().item()));
  check_near(cosine_similarity(full({2, 3000}, 60000.0, kFloat16), full({2, 3000}, 60000.0, kFloat16)), {1, 1}, 1e-3);
  CHECK(cosine_similarity(zeros({3}), ones({3}), 0).item() == 0);
  CHECK(cosine_similarity(ones({3}, kInt64), ones({3}, kFloat64), 0).dtype() == kFloat64);
  CHECK_THROWS_AS(cosine_similarity(ones({3}, kInt64), ones({3}, kInt64), 0), DTypeError);
}

TEST_CASE("normalize and cosine_similarity where a norm is smaller than eps") {
  check_close(gradient([](const Tensor& t) { return normalize(t, 2, 0); }, {0, 0}), {1e12, 1e12});
  const Tensor other = tensor<double>({1, 2});
  check_close(gradient([&](const Tensor& t) { return cosine_similarity(t, other, 0); }, {0, 0}),
              {44721359.549995795, 89442719.09999159});
  check_close(gradient([&](const Tensor& t) { return normalize(t, 2, 0) * other; }, {3, 4}), {-0.064, 0.048});
  CHECK(cosine_similarity(ones({2, 3}), ones({2, 3})).to_vector<float>()[1] == doctest::Approx(1));
  CHECK_THROWS_AS(cosine_similarity(ones({3}), ones({3})), IndexError);
}

TEST_CASE("the gradient of a product with one zero, and with two") {
  const auto product = [](const Tensor& t) { return prod(t); };
  check_close(gradient(product, {0, 2, 3}), {6, 0, 0});
  check_close(gradient(product, {0, 0, 3}), {0, 0, 0});
  check_close(gradient([](const Tensor& t) { return prod(t, {0}); }, {1, 0, 2, 5, 3, 4}, {3, 2}), {6, 20, 3, 0, 2, 0});
  CHECK(gradient([](const Tensor& t) { return prod(t, {1}); }, {}, {2, 0}).empty());
  CHECK(prod(tensor<int32_t>({2, 3})).dtype() == kInt64);
  // In float16 the product of the other seven elements would be rounded at each step.
  RandomGenerator generator(3);
  const Tensor x = (rand({8}, {kFloat64}, &generator) + 0.5).to(kFloat16).requires_grad_();
  prod(x).backward();
  const auto values = x.to_vector<double>();
  double others = 1;
  for (size_t i = 1; i < values.size(); ++i)
    others *= values[i];
  CHECK(x.grad().to_vector<double>()[0] == doctest::Approx(others).epsilon(5e-4));
}

TEST_CASE("the gradient of a standard deviation of equal numbers is 0, and that of a variance of one NaN") {
  check_close(gradient([](const Tensor& t) { return brigade::std(t); }, {3, 3}), {0, 0});
  check_close(gradient([](const Tensor& t) { return var(t); }, {3}), {kNaN});
  const Tensor one = tensor<double>({3}).requires_grad_();
  CHECK(!autograd::grad({var(one)}, {one}, {.create_graph = true})[0].requires_grad());
  check_close(gradient([](const Tensor& t) { return var(t, {}, false); }, {3, 5}), {-1, 1});
  check_close(gradient([](const Tensor& t) { return var_mean(t, {1}).mean; }, {3, 5, 1, 2}, {2, 2}),
              {0.5, 0.5, 0.5, 0.5});
  const SpreadAndMean found = std_mean(tensor<double>({1, 3, 2, 2}, {2, 2}), {1}, 0, true);
  CHECK(found.spread.to_vector<double>() == Numbers{1, 0});
  CHECK(found.mean.to_vector<double>() == Numbers{2, 2});
  CHECK(found.mean.sizes() == Shape{2, 1});
  CHECK_THROWS_WITH_AS(var(ones({2}, kInt64)), doctest::Contains("reductions_test.cpp:"), DTypeError);
}

TEST_CASE("logsumexp of infinities, of integers and of nothing") {
  const auto all = [](const Tensor& t) { return logsumexp(t); };
  check_close(gradient(all, {1, -kInfinity}), {1, 0});
  CHECK(logsumexp(tensor<double>({kInfinity, 1})).item() == kInfinity);
  CHECK(logsumexp(zeros({0})).item() == -kInfinity);
  CHECK(logsumexp(zeros({4}, kInt64)).dtype() == kFloat32);
  CHECK(logsumexp(full({2}, 1000.0)).item() == doctest::Approx(1000 + std::log(2.0)));
}

TEST_CASE("any, all and count_nonzero") {
  const Tensor x = tensor<float>({0, 1, 0, 0, 2, static_cast<float>(kNaN)}, {3, 2});
  CHECK(any(x).item<int64_t>() == 1);
  CHECK(any(x, {1}).to_vector<int64_t>() == std::vector<int64_t>{1, 0, 1});
  CHECK(all(x, {1}).to_vector<int64_t>() == std::vector<int64_t>{0, 0, 1});
  CHECK(all(x, {0}, true).sizes() == Shape{1, 2});
  CHECK(count_nonzero(x, {0}).to_vector<int64_t>() == std::vector<int64_t>{1, 2});
  CHECK(count_nonzero(x).item<int64_t>() == 3);
  CHECK_FALSE(any(zeros({0})).item<bool>());
  CHECK(all(zeros({0})).item<bool>());
  CHECK(any(gt(x, 1.0)).item<bool>());
  CHECK_FALSE(all(gt(x, 1.0)).item<bool>());
  CHECK(any(x).dtype() == kBool);
  CHECK(all(zeros({2}, kUInt8)).dtype() == kUInt8);
  CHECK(count_nonzero(x).dtype() == kInt64);
  CHECK_FALSE(any(normal_input({2}, 1)).requires_grad());
}

TEST_CASE("sums of integers are int64, means of them an error; sum_to of the same sizes keeps the dtype") {
  for (const DType dtype : {kInt64, kInt32, kUInt8, kBool}) {
    CHECK(sum(ones({300}, dtype)).dtype() == kInt64);
    CHECK(sum(ones({300}, dtype)).item<int64_t>() == 300);
    CHECK_THROWS_AS(mean(ones({3}, dtype)), DTypeError);
    CHECK(sum_to(ones({2, 1}, dtype), {1}).item<int64_t>() == 2);
    CHECK(sum_to(ones({2, 1}, dtype), {2, 1}).dtype() == dtype);
    CHECK(sum_to(ones({}, dtype), {}).dtype() == kInt64);  // a sum, over no dimensions
  }
}

}  // namespace brigade::test::reductions_test
