// Infinities and NaN in a backward pass: which gradients they reach, and which they must not.
#include <near.h>

#include <brigade/autograd/backward.h>
#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace brigade::test::infinities_test {
using test::check_near;

namespace {

using Values = std::vector<double>;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr DType kFloats[] = {kFloat64, kFloat32, kFloat16, kBFloat16};
Values values(const Tensor& x) { return x.to_vector<double>(); }
Tensor row(std::initializer_list<double> numbers) { return tensor<double>(numbers).requires_grad_(); }

}  // namespace

TEST_CASE("a count of elements is constant, whatever the gradient that comes") {
  const Tensor x = row({1, 0, -2});
  const Tensor count = norm(x, 0);
  CHECK(count.item<double>() == 2);
  (count * kInfinity).backward();
  CHECK(values(x.grad()) == Values{0, 0, 0});
}

TEST_CASE("a power of 0 is constant, whatever the gradient that comes") {
  const Tensor x = row({1, 0});
  (pow(x, 0.0) * tensor<double>({kNaN, kInfinity})).sum().backward();
  CHECK(values(x.grad()) == Values{0, 0});
}

TEST_CASE("behind an infinity logcumsumexp has gradients of 0") {
  const Tensor x = row({2, kInfinity, -6, 10000});
  (logcumsumexp(x, 0) * tensor<double>({3, 1, 1, 1})).sum().backward();
  const Values found = values(x.grad());
  CHECK(found[0] == 3);
  CHECK(std::isnan(found[1]));
  CHECK(found[2] == 0);
  CHECK(found[3] == 0);
}

TEST_CASE("sign has a gradient of zeros") {
  const Tensor x = row({-2, 0, 3});
  (sign(x) * kInfinity).sum().backward();
  CHECK(values(x.grad()) == Values{0, 0, 0});
}

TEST_CASE("a mean that is infinite comes with a variance of NaN, in rows and in columns") {
  const Tensor x = tensor<double>({3, -1, -kInfinity, 1, 1, 2}).reshape({3, 2});
  for (const DType dtype : kFloats) {
    CAPTURE(name(dtype));
    const SpreadAndMean columns = var_mean(x.to(dtype), {0}, 1);
    const Values means = values(columns.mean), spreads = values(columns.spread);
    CHECK(means[0] == -kInfinity);
    check_near(columns.mean.narrow(0, 1, 1), {2.0 / 3}, 4e-3);
    CHECK(std::isnan(spreads[0]));
    CHECK(std::isfinite(spreads[1]));
    const SpreadAndMean all = std_mean(x.to(dtype), {}, 0);
    CHECK(values(all.mean) == Values{-kInfinity});
    CHECK(std::isnan(values(all.spread)[0]));
    CHECK(std::isnan(values(var_mean(tensor<double>({kInfinity, -kInfinity}).to(dtype)).mean)[0]));
  }
}

TEST_CASE("an infinite gradient of a largest element is none of the others'") {
  const Tensor infinite = full({}, kInfinity, kFloat64);
  const Tensor x = row({3, 1, 2});
  (max(x) * infinite).backward();
  CHECK(values(x.grad()) == Values{kInfinity, 0, 0});
  x.set_grad(Tensor());
  const std::vector<Tensor> outputs{max(x, 0).values}, inputs{x};
  CHECK(values(autograd::grad(outputs, inputs, {.grad_outputs = {infinite}, .create_graph = true})[0]) ==
        Values{kInfinity, 0, 0});
}

TEST_CASE("a margin loss passes nothing to what its labels leave out") {
  const Tensor nan = full({}, kNaN, kFloat64);
  const Tensor x = row({0.5, -2, 3});
  (hinge_embedding_loss(x, tensor<double>({1, -1, 1}), 1, Reduction::Sum) * nan).backward();
  CHECK(std::isnan(values(x.grad())[0]));
  CHECK(std::isnan(values(x.grad())[1]));
  const Tensor a = tensor<double>({1, 0}).reshape({1, 2}).requires_grad_();
  const Tensor b = tensor<double>({0, 1}).reshape({1, 2}).requires_grad_();
  const Tensor apart = cosine_embedding_loss(a, b, tensor<double>({0}), 0, Reduction::Sum);  // neither 1 nor -1
  CHECK(apart.item<double>() == 0);
  (apart * nan).backward();
  CHECK(values(a.grad()) == Values{0, 0});
  CHECK(values(b.grad()) == Values{0, 0});
}

TEST_CASE("the second derivative of a remainder by its divisor is 0, also where that is 0") {
  const Tensor x = row({3}), y = row({0});
  const std::vector<Tensor> outputs{remainder(x, y).sum()}, inputs{y};
  const Tensor first = autograd::grad(outputs, inputs, {.create_graph = true})[0];
  CHECK(!first.requires_grad());
}

TEST_CASE("where hardswish is straight its second derivative is 0, whatever the gradient that comes") {
  const Tensor x = row({-4, 4, 0});
  const Tensor slope = autograd::grad(
      {hardswish(x)}, {x}, {.grad_outputs = {tensor<double>({kInfinity, kInfinity, 3})}, .create_graph = true})[0];
  CHECK(values(slope) == Values{0, kInfinity, 1.5});
  const Tensor second = autograd::grad({slope}, {x}, {.grad_outputs = {tensor<double>({1, 1, 1})}})[0];
  CHECK(values(second) == Values{0, 0, 1});
}

TEST_CASE("a standard deviation whose square is beyond the dtype") {
  for (const DType dtype : {kFloat32, kBFloat16}) {
    CAPTURE(name(dtype));
    const double large = 0x1p+100;
    const Tensor x = tensor<double>({large, -large, large, -large}).reshape({2, 2}).to(dtype);
    CHECK(values(brigade::std(x, {}, 0)) == Values{large});
    CHECK(values(brigade::std(x, {1}, 0)) == Values{large, large});
    CHECK(values(brigade::std(x.transpose(0, 1), {0}, 0)) == Values{large, large});
    CHECK(std::isinf(values(var(x, {}, 0))[0]));
  }
}

TEST_CASE("a logit that is infinite has no loss where the target agrees, and an infinite one where it does not") {
  for (const DType dtype : kFloats) {
    CAPTURE(name(dtype));
    const Tensor x =
        tensor<double>({kInfinity, -kInfinity, kInfinity, -kInfinity, kInfinity, -kInfinity, kNaN}).to(dtype);
    const Tensor target = tensor<double>({1, 0, 0, 1, 0.25, 0.25, 0}).to(dtype);
    const Values plain = values(binary_cross_entropy_with_logits(x, target, Reduction::None));
    CHECK(Values(plain.begin(), plain.begin() + 6) == Values{0, 0, kInfinity, kInfinity, kInfinity, kInfinity});
    CHECK(std::isnan(plain[6]));
    const Tensor twice = full({1}, 2, dtype);
    const Values weighted =
        values(binary_cross_entropy_with_logits(x, target, {.reduction = Reduction::None, .pos_weight = twice}));
    CHECK(weighted[4] == kInfinity);
    CHECK(weighted[5] == kInfinity);
  }
}

TEST_CASE("an infinite gradient of cross_entropy goes to every class") {
  for (const DType dtype : kFloats) {
    CAPTURE(name(dtype));
    for (const bool has_positions : {false, true}) {
      CAPTURE(has_positions);
      const Tensor x = tensor<double>({1, 2, 3}).reshape(has_positions ? Shape{1, 3, 1} : Shape{1, 3}).to(dtype);
      const Tensor logits = x.detach().requires_grad_();
      const Tensor target = tensor<int64_t>({1}).reshape(has_positions ? Shape{1, 1} : Shape{1});
      (cross_entropy(logits, target) * full({}, kInfinity, dtype)).backward();
      CHECK(values(logits.grad())[0] == kInfinity);
      CHECK(values(logits.grad())[2] == kInfinity);
    }
  }
}

}  // namespace brigade::test::infinities_test
