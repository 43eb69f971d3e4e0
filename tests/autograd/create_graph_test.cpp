// Second derivatives through the engine: grad and backward with create_graph, hooks, checkpoints, gradient penalties.
#include <brigade/autograd/checkpoint.h>
#include <brigade/autograd/functional.h>
#include <brigade/autograd/meta.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

#include <cmath>

namespace brigade::test::create_graph_test {
using Values = std::vector<double>;

namespace {

Tensor leaf(Values values) { return tensor(values, {static_cast<int64_t>(values.size())}).requires_grad_(); }
Values values(const Tensor& x) { return x.to_vector<double>(); }
Tensor derivative(const Tensor& y, const Tensor& x, bool create_graph = true) {
  const Tensor outputs[] = {sum(y)};
  const Tensor inputs[] = {x};
  return autograd::grad(outputs, inputs, {.create_graph = create_graph})[0];
}

}  // namespace

TEST_CASE("derivatives of x^4 up to the fourth order") {
  const Tensor x = leaf({1, 2, -3});
  const Tensor first = derivative(square(square(x)), x);
  const Tensor second = derivative(first, x);
  const Tensor third = derivative(second, x);
  const Tensor fourth = derivative(third, x, false);
  CHECK(values(first) == Values{4, 32, -108});
  CHECK(values(second) == Values{12, 48, 108});
  CHECK(values(third) == Values{24, 48, -72});
  CHECK(values(fourth) == Values{24, 24, 24});
  CHECK(first.requires_grad());
  CHECK_FALSE(fourth.requires_grad());
  CHECK_FALSE(x.grad().defined());
}

TEST_CASE("backward with create_graph leaves gradients with a history, and adds to it") {
  const Tensor x = leaf({3});
  (x * x * x).backward({.create_graph = true});
  CHECK(values(x.grad()) == Values{27});
  CHECK(x.grad().requires_grad());
  const Tensor g = x.grad();
  (x * x).backward({.create_graph = true});  // 27 + 6
  CHECK(values(x.grad()) == Values{33});
  CHECK(values(g) == Values{27});  // not written to
  const Tensor outputs[] = {x.grad()};
  const Tensor inputs[] = {x};
  CHECK(values(autograd::grad(outputs, inputs)[0]) == Values{6 * 3 + 2});
  x.set_grad(Tensor());
}

TEST_CASE("a gradient penalty trains the parameters behind the gradient") {
  // D(x) = w . x^2; penalty = (dD/dx)^2 = (2 w x)^2, whose derivative w.r.t. w is 8 w x^2.
  const Tensor w = leaf({0.5, 2});
  const Tensor x = leaf({1, 3});
  const Tensor slope = derivative(w * x * x, x);
  sum(slope * slope).backward();
  CHECK(values(w.grad()) == Values{8 * 0.5 * 1, 8 * 2 * 9.0});
}

TEST_CASE("without create_graph gradients have no history") {
  const Tensor x = leaf({2});
  CHECK_FALSE(derivative(x * x, x, false).requires_grad());
  const Tensor y = x * x;
  CHECK_FALSE(derivative(y, x, false).requires_grad());
  const Tensor outputs[] = {y};
  const Tensor inputs[] = {x};
  CHECK_THROWS_WITH_AS(autograd::grad(outputs, inputs), doctest::Contains("a second time"), AutogradError);
}

TEST_CASE("grad: unused inputs, zeros in their place, and an input asked for twice") {
  const Tensor x = leaf({2});
  const Tensor other = leaf({1, 1});
  const Tensor outputs[] = {x * x};
  const Tensor inputs[] = {x, other, x};
  CHECK_THROWS_WITH_AS(autograd::grad(outputs, inputs, {.retain_graph = true}),
                       doctest::Contains("not have been used in the graph"), AutogradError);
  auto found = autograd::grad(outputs, inputs, {.retain_graph = true, .allow_unused = true});
  CHECK_FALSE(found[1].defined());
  CHECK(values(found[0]) == Values{4});
  CHECK(values(found[2]) == Values{4});
  found = autograd::grad(outputs, inputs, {.materialize_grads = true});
  CHECK(values(found[1]) == Values{0, 0});
}

TEST_CASE("hooks of captured inputs change what grad returns, of leaves and of results") {
  const Tensor x = leaf({2});
  x.register_hook([](const Tensor& g) { return g * 10.0; });
  const Tensor y = x * 3.0;
  y.register_hook([](const Tensor& g) { return g + 1.0; });
  const Tensor outputs[] = {y * y};
  const Tensor inputs[] = {y, x};
  const auto found = autograd::grad(outputs, inputs);
  CHECK(values(found[0]) == Values{13});
  CHECK(values(found[1]) == Values{390});
}

TEST_CASE("second derivatives come through a checkpoint, also where one input depends on another") {
  const Tensor a = leaf({1.5, -0.5});
  const Tensor w = leaf({2, 3});
  const auto segment = [&](const std::vector<Tensor>& in) { return in[0] * in[1] * in[1] * w; };
  const auto second = [&](bool checkpointed) {
    const Tensor b = a * a;
    const Tensor y = checkpointed ? autograd::checkpoint(segment, std::vector<Tensor>{a, b}) : segment({a, b});
    const Tensor outputs[] = {sum(y)};
    const Tensor inputs[] = {a, w};
    const auto first = autograd::grad(outputs, inputs, {.create_graph = true});
    const Tensor again[] = {sum(first[0] * first[0]) + sum(first[1])};
    return autograd::grad(again, inputs);
  };
  const auto plain = second(false);
  const auto checkpointed = second(true);
  for (size_t i = 0; i < 2; ++i) {
    for (size_t k = 0; k < 2; ++k)
      CHECK(values(checkpointed[i])[k] == doctest::Approx(values(plain[i])[k]).epsilon(1e-14));
  }
  // y = w a^5, y' = 5 w a^4. d(sum of squares)/da = 200 w^2 a^7; d(sum of a^5)/da = 5 a^4.
  CHECK(values(plain[0])[0] == doctest::Approx(200 * 4 * std::pow(1.5, 7) + 5 * std::pow(1.5, 4)));
}

TEST_CASE("what a checkpointed segment captures gets its gradients: results, one made from another, an input as well") {
  const Tensor x = leaf({1.5, -0.5});
  const Tensor w = leaf({2, 3});
  const auto derivatives = [&](bool checkpointed) {
    const Tensor b = x * w;
    const Tensor c = square(b);
    const Tensor part = reshape(c, {2});  // a view
    const auto segment = [&](const Tensor& in) { return in * in * b + c * part * in + x * in * b; };
    const Tensor y = checkpointed ? autograd::checkpoint(segment, x) : segment(x);
    const Tensor outputs[] = {sum(y * b)};
    const Tensor inputs[] = {x, w, b, c};
    std::vector<Tensor> found = autograd::grad(outputs, inputs, {.create_graph = true});
    const Tensor again[] = {sum(square(found[0])) + sum(found[1] * found[3])};
    for (const Tensor& each : autograd::grad(again, std::span(inputs).first(2)))
      found.push_back(each);
    return found;
  };
  const auto plain = derivatives(false);
  const auto checkpointed = derivatives(true);
  REQUIRE(plain.size() == 6);
  for (size_t i = 0; i < plain.size(); ++i) {
    CAPTURE(i);
    for (size_t k = 0; k < 2; ++k)
      CHECK(values(checkpointed[i])[k] == doctest::Approx(values(plain[i])[k]).epsilon(1e-13));
  }
  // With b = x w and c = b^2, the sum is (2 x^2 b + c^2 x) b; its derivative w.r.t. c is 2 c x b.
  CHECK(values(plain[3])[0] == doctest::Approx(2 * 9 * 1.5 * 3));
}

TEST_CASE("a checkpoint within a checkpoint captures results of the outer segment") {
  const Tensor x = leaf({1.5, -0.5});
  const Tensor w = leaf({2, 3});
  const auto derivatives = [&](bool checkpointed) {
    const auto outer = [&](const Tensor& in) {
      const Tensor b = in * w;
      const auto inner = [b, x](const Tensor& t) { return t * b * x; };  // b is out of scope when inner runs again
      return checkpointed ? autograd::checkpoint(inner, square(in)) : inner(square(in));
    };
    const Tensor outputs[] = {sum(checkpointed ? autograd::checkpoint(outer, x) : outer(x))};
    const Tensor inputs[] = {x, w};
    return autograd::grad(outputs, inputs, {.create_graph = true});
  };
  // x^4 w
  const auto plain = derivatives(false), checkpointed = derivatives(true);
  CHECK(values(plain[0])[0] == doctest::Approx(4 * 2 * std::pow(1.5, 3)));
  for (size_t k = 0; k < 2; ++k) {
    CHECK(values(checkpointed[0])[k] == doctest::Approx(values(plain[0])[k]));
    CHECK(values(checkpointed[1])[k] == doctest::Approx(values(plain[1])[k]));
    CHECK(values(derivative(checkpointed[0], w))[k] == doctest::Approx(4 * std::pow(k == 0 ? 1.5 : -0.5, 3)));
  }
}

TEST_CASE("a checkpointed segment that returns what it captured, or nothing that depends on it") {
  const Tensor x = leaf({1.5, -0.5});
  const Tensor b = x * 3.0;
  const Tensor y = autograd::checkpoint([&](const Tensor&) { return b; }, x);
  CHECK(values(derivative(y, x)) == Values{3, 3});
  const Tensor z = autograd::checkpoint(
      [&](const Tensor& in) {
        (void)square(b);
        return in * 2.0;
      },
      x);
  CHECK(values(derivative(z, x)) == Values{2, 2});
}

TEST_CASE("what a recorded backward records carries the line of the forward operation") {
  const Tensor x = leaf({2});
  const unsigned line = std::source_location::current().line() + 1;
  const Tensor y = exp(x);
  const Tensor g = derivative(y, x);
  CHECK(autograd::grad_fn(g)->where.line() == line);
}

}  // namespace brigade::test::create_graph_test
