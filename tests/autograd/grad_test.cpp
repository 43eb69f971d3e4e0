// autograd::grad, activation checkpointing, retained graphs, stamps.
#include <brigade/autograd/backward.h>
#include <brigade/autograd/checkpoint.h>
#include <brigade/autograd/functional.h>
#include <brigade/autograd/meta.h>
#include <brigade/autograd/write_log.h>
#include <brigade/core/random.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

namespace brigade::test::grad_test {
namespace {

std::vector<double> values(const Tensor& tensor) { return tensor.to_vector<double>(); }

Tensor leaf(std::initializer_list<double> numbers) { return tensor<double>(numbers).requires_grad_(); }

}  // namespace

TEST_CASE("grad returns gradients of leaves and results, and touches no .grad") {
  const Tensor a = leaf({1, 2, 3});
  const Tensor b = leaf({4, 5, 6});
  const Tensor product = a * b;
  const Tensor loss[] = {square(product).sum()};
  const Tensor inputs[] = {a, product};
  const std::vector<Tensor> gradients = autograd::grad(loss, inputs, {.retain_graph = true});
  CHECK(values(gradients[0]) == std::vector<double>{2 * 4 * 4, 2 * 10 * 5, 2 * 18 * 6});
  CHECK(values(gradients[1]) == std::vector<double>{8, 20, 36});
  CHECK_FALSE(a.grad().defined());
  CHECK_FALSE(b.grad().defined());
  // Weighted outputs. Without retain_graph the graph is freed afterwards.
  const std::vector<Tensor> weighted =
      autograd::grad(loss, std::span(inputs, 1), {.grad_outputs = {full({}, 0.5, kFloat64)}});
  CHECK(values(weighted[0]) == std::vector<double>{16, 50, 108});
  CHECK_THROWS_WITH_AS(autograd::grad(loss, std::span(inputs, 1)),
                       doctest::Contains("backward through the graph a second time"), AutogradError);

  // Only nodes that lead to an input run: the branch of `c` keeps its saved tensors.
  const Tensor c = leaf({2, 2, 2});
  const Tensor kept = brigade::exp(c);
  const Tensor both[] = {(square(a) + kept).sum()};
  CHECK(values(autograd::grad(both, std::span(inputs, 1))[0]) == std::vector<double>{2, 4, 6});
  CHECK_NOTHROW(kept.sum().backward());
  CHECK(c.grad().defined());

  const Tensor other[] = {leaf({1})};
  const Tensor sum[] = {a.sum()};
  CHECK_THROWS_WITH_AS(autograd::grad(sum, other, {.retain_graph = true}),
                       doctest::Contains("appears to not have been used in the graph"), AutogradError);
  CHECK_FALSE(autograd::grad(sum, other, {.allow_unused = true})[0].defined());
  const Tensor plain[] = {tensor<double>({1, 2})};
  CHECK_THROWS_WITH_AS(autograd::grad(sum, plain), doctest::Contains("does not require grad"), AutogradError);
}

TEST_CASE("grad and backward take one tensor, several in braces, or a vector") {
  const Tensor a = leaf({1, 2});
  const Tensor b = leaf({3, 5});
  const auto loss = [&] { return (a * b).sum(); };
  CHECK(values(autograd::grad(loss(), a)[0]) == std::vector<double>{3, 5});
  CHECK(values(autograd::grad({loss()}, {b})[0]) == std::vector<double>{1, 2});
  const std::vector<Tensor> both = autograd::grad({loss(), a.sum()}, {b, a}, {.create_graph = true});
  CHECK(values(both[0]) == std::vector<double>{1, 2});
  CHECK(values(both[1]) == std::vector<double>{4, 6});
  CHECK(values(autograd::grad(loss(), std::vector<Tensor>{b, a})[1]) == std::vector<double>{3, 5});
  autograd::backward({loss(), b.sum()}, {});
  CHECK(values(a.grad()) == std::vector<double>{3, 5});
  CHECK(values(b.grad()) == std::vector<double>{2, 3});
}

TEST_CASE("what lies behind a result whose gradient was asked for stays for another backward") {
  const Tensor x = leaf({1, 2, 3});
  const Tensor hidden = square(x);
  const Tensor loss[] = {brigade::exp(hidden).sum()};
  const Tensor at[] = {hidden};
  const Tensor gradient = autograd::grad(loss, at)[0];
  CHECK(gradient.to_vector<double>()[0] == doctest::Approx(std::exp(1.0)));
  hidden.backward({.gradient = gradient});
  CHECK(x.grad().to_vector<double>()[1] == doctest::Approx(4 * std::exp(4.0)));
}

TEST_CASE("a freed part of the graph that leads to none of the inputs is in nobody's way") {
  const Tensor a = leaf({1, 2});
  const Tensor b = leaf({3, 4});
  const Tensor freed = square(a);
  freed.sum().backward();
  const Tensor loss[] = {(freed + square(b)).sum()};
  const Tensor only_b[] = {b};
  const Tensor only_a[] = {a};
  CHECK_THROWS_WITH_AS(autograd::grad(loss, only_a, {.retain_graph = true}),
                       doctest::Contains("backward through the graph a second time"), AutogradError);
  const Tensor at_freed[] = {freed};
  CHECK(values(autograd::grad(loss, at_freed, {.retain_graph = true})[0]) == std::vector<double>{1, 1});
  CHECK(values(autograd::grad(loss, only_b)[0]) == std::vector<double>{6, 8});
}

TEST_CASE("zeros in place of a gradient that there is not require grad with create_graph, as the gradients do") {
  const Tensor a = leaf({1, 2});
  const Tensor unused[] = {leaf({3})};
  const Tensor loss[] = {square(a).sum()};
  CHECK_FALSE(autograd::grad(loss, unused, {.retain_graph = true, .materialize_grads = true})[0].requires_grad());
  CHECK(autograd::grad(loss, unused, {.create_graph = true, .materialize_grads = true})[0].requires_grad());
}

TEST_CASE("a checkpointed segment gives the same gradients, nested, shared, and with dropout") {
  RandomGenerator generator(3);
  const Tensor weight = randn({4, 4}, kFloat64, &generator).requires_grad_();
  const Tensor other = randn({4, 4}, kFloat64, &generator).requires_grad_();
  const Tensor input = randn({5, 4}, kFloat64, &generator).requires_grad_();
  const auto inner = [&](const Tensor& x) { return dropout(brigade::tanh(matmul(x, weight)), 0.4, true); };
  const auto run = [&](bool checkpointed) {
    manual_seed(11);
    for (const Tensor& each : {weight, other, input})
      each.set_grad(Tensor());
    const auto outer = [&](const Tensor& x) {
      const Tensor middle = checkpointed ? autograd::checkpoint(inner, x) : inner(x);
      return matmul(inner(middle), other);
    };
    const Tensor y = checkpointed ? autograd::checkpoint(outer, input) : outer(input);
    const Tensor noise = rand({2}, kFloat64);  // the random stream continues from the same offset
    (square(y).sum() + noise.sum()).backward();
    std::vector<double> all = values(noise);
    for (const Tensor& each : {weight, other, input, y}) {
      for (const double v : values(each.is_same(y) ? y : each.grad()))
        all.push_back(v);
    }
    return all;
  };
  const std::vector<double> expected = run(false);
  const std::vector<double> found = run(true);
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    CHECK(found[i] == doctest::Approx(expected[i]).epsilon(1e-13));
  CHECK(autograd::meta(weight)->stamp.backwards == 1);  // one backward, however often the weight was used

  // With no input that requires grad, the segment simply runs. A segment that computes something else on replay is
  // rejected.
  CHECK_FALSE(autograd::checkpoint([](const Tensor& x) { return x * 2.0; }, tensor<double>({1})).requires_grad());
  int calls = 0;
  const Tensor odd = autograd::checkpoint(
      [&](const Tensor& x) {
        return ++calls == 1 ? x * 2.0 : cat({x, x});
      },
      leaf({1, 2}));
  CHECK_THROWS_WITH_AS(odd.sum().backward(), doctest::Contains("must compute the same thing both times"),
                       AutogradError);
}

TEST_CASE("a checkpointed segment that takes another way when it runs again is refused, with the lines of both") {
  const Tensor x = leaf({1, 2}), w = leaf({3, 4});
  int runs = 0;
  const auto refused = [&](const std::function<Tensor(const Tensor&)>& segment) -> std::string {
    runs = 0;
    x.set_grad(Tensor());
    const Tensor y = autograd::checkpoint(segment, x);
    try {
      y.sum().backward();
    } catch (const AutogradError& error) {
      return error.what();
    }
    return "";
  };
  const unsigned line = __LINE__ + 3;
  const std::string branch = refused([&](const Tensor& in) {
    if (++runs == 1) return square(in) * w;
    return brigade::exp(in);
  });
  CHECK(branch.find(fmt::format("ran differently the second time: exp at autograd/grad_test.cpp:{} where the first run "
                                "had square at autograd/grad_test.cpp:{} (",
                                line, line - 1)) != std::string::npos);
  // Same values, but what the first run kept has no history; and no parameter is involved, but the values differ.
  Tensor kept;
  CHECK_FALSE(refused([&](const Tensor& in) {
                if (++runs == 1) kept = w * 2.0;
                return in * kept;
              }).empty());
  CHECK(refused([&](const Tensor& in) { return ++runs == 1 ? square(in) * 2.0 : square(in); }).find("nothing more") !=
        std::string::npos);

  // Other operations that change nothing: a cache of constants, a log, the value of a parameter that both runs use; and
  // other values of the same operations.
  Tensor mask;
  CHECK(refused([&](const Tensor& in) {
          if (++runs == 1) mask = ones({2}, kFloat64) * 0.5;
          return in * mask;
        }) == "");
  CHECK(values(x.grad()) == std::vector<double>{0.5, 0.5});
  CHECK(refused([&](const Tensor& in) {
          if (++runs == 2) (void)sum(square(in * w)).item();
          return in * w;
        }) == "");
  CHECK(refused([&](const Tensor& in) { return in * static_cast<double>(++runs); }) == "");
  CHECK(values(x.grad()) == std::vector<double>{2, 2});
  // What runs within: nested checkpoints, one of which returns its input, writes in place, copies and no_grad.
  CHECK(refused([&](const Tensor& in) {
          Tensor y = autograd::checkpoint([&](const Tensor& deep) { return deep * w; }, in).clone();
          y.mul_(2.0).div_(w);
          const NoGradGuard no_grad;
          const Tensor scale = autograd::checkpoint([](const Tensor& same) { return same; }, w.detach()) + 1.0;
          const EnableGradGuard grad_on;
          return y * scale;
        }) == "");
}

TEST_CASE("a graph that was kept for nothing is distinguished from one that was used again") {
  autograd::take_retained_graphs();
  const Tensor a = leaf({1, 2});
  Tensor needless = brigade::exp(a).sum();
  needless.backward({.retain_graph = true});
  CHECK(autograd::take_retained_graphs().empty());  // a later backward may still use it
  needless = Tensor();
  const Tensor useful = brigade::exp(a).sum();
  useful.backward({.retain_graph = true});
  useful.backward();
  const auto graphs = autograd::take_retained_graphs();
  REQUIRE(graphs.size() == 2);
  CHECK_FALSE(graphs[0].used_again);
  CHECK(graphs[0].bytes == 16);  // exp saves its result
  CHECK(graphs[0].nodes == 2);
  CHECK(graphs[1].used_again);
  CHECK(autograd::take_retained_graphs().empty());

  // Retained across a step for the next backward.
  const Tensor shared = brigade::exp(a);
  shared.sum().backward({.retain_graph = true});
  CHECK(autograd::take_retained_graphs().empty());
  (shared * 2.0).sum().backward();
  const auto later = autograd::take_retained_graphs();
  REQUIRE(later.size() == 1);
  CHECK(later[0].used_again);
}

TEST_CASE("a line whose graph is used again now and then does not keep it for nothing") {
  autograd::take_retained_graphs();
  for (const bool again : {true, false, true, false}) {
    CAPTURE(again);
    {
      const Tensor loss = brigade::exp(leaf({1, 2})).sum();
      loss.backward({.retain_graph = true});
      if (again) loss.backward();
    }
    const auto graphs = autograd::take_retained_graphs();
    REQUIRE(graphs.size() == 1);
    CHECK(graphs[0].used_again);
  }
}

TEST_CASE("gradients carry a stamp") {
  const Tensor a = leaf({1, 2});
  const auto stamp = [&] { return autograd::meta(a)->stamp; };
  a.sum().backward();
  square(a).sum().backward();
  CHECK(stamp().backwards == 2);
  CHECK_FALSE(stamp().by_hand);
  CHECK(stamp().last_backward_at.line() == __LINE__ - 3);
  a.set_grad(tensor<double>({3, 4}));
  CHECK(stamp().by_hand);
  CHECK(stamp().backwards == 0);
  CHECK(stamp().set_at.line() == __LINE__ - 3);
  a.set_grad(Tensor());
  CHECK_FALSE(stamp().by_hand);
}

}  // namespace brigade::test::grad_test
