// Arguments and situations that backward rejects: wrong counts, wrong gradient shapes, two threads in one graph.
#include <brigade/autograd/backward.h>
#include <brigade/autograd/checkpoint.h>
#include <brigade/autograd/functional.h>
#include <brigade/autograd/gradcheck.h>
#include <brigade/autograd/listener.h>
#include <brigade/autograd/meta.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

#include <optional>
#include <thread>

namespace brigade::test::backward_refusals_test {
using doctest::Contains;
using Tensors = std::vector<Tensor>;

namespace {

Tensor leaf(const Shape& sizes = {2}) { return ones(sizes).requires_grad_(); }

// Records the operations at which gradients stop being finite.
struct FirstNonFinite final : autograd::Listener {
  std::vector<std::string> ops;
  void on_plan(const autograd::Plan&) override {}
  void on_grad_ready(uint32_t, bool) override {}
  void on_finish(const autograd::Plan&) override {}
  void on_error(const autograd::Plan*, std::exception_ptr) noexcept override {}
  bool looks_for_non_finite() const override { return true; }
  void on_non_finite(const char* op, SourceLocation, DType) override { ops.emplace_back(op); }
};

}  // namespace

TEST_CASE("one gradient for each root or none, of its shape") {
  const Tensor x = leaf();
  const Tensors y{sum(x), sum(x * 2.0)}, inputs{x};
  CHECK_THROWS_WITH_AS(autograd::backward(y, Tensors{ones({})}), Contains("got 2 roots and 1 gradients"),
                       AutogradError);
  CHECK_THROWS_WITH_AS(autograd::grad(y, inputs, {.grad_outputs = Tensors{ones({})}}),
                       Contains("got 2 outputs and 1 grad_outputs; give one for each output"), AutogradError);
  const Tensor z = x * 2.0;
  CHECK_THROWS_WITH_AS(
      z.backward({.gradient = ones({3})}),
      Contains("Mismatch in shape: grad_output[0] has a shape of [3] and output[0] has a shape of [2]."),
      AutogradError);
  CHECK_THROWS_WITH_AS(autograd::backward(Tensors{Tensor()}, {}), Contains("element 0 of tensors is undefined"),
                       AutogradError);
  CHECK_FALSE(x.grad().defined());
  CHECK_THROWS_WITH_AS(x.set_grad(ones({2}, {kFloat64})), Contains("expected float32, got float64"), DTypeError);
}

TEST_CASE("a hook's gradient has the shape of the one that it replaces") {
  const Tensor x = leaf();
  const uint64_t hook = x.register_hook([](const Tensor&) { return ones({3}); });
  CHECK_THROWS_WITH_AS(sum(x).backward(), Contains("a hook on a leaf returned float32 [3]"), AutogradError);
  x.remove_hook(hook);
  const Tensor y = x * 2.0;
  y.register_hook([](const Tensor&) { return ones({2}, {kFloat64}); });
  CHECK_THROWS_WITH_AS(sum(y).backward(), Contains("a hook on a result of 'mul' returned float64 [2]"), AutogradError);
}

TEST_CASE("two backwards over one graph at once are refused, and the first one goes on") {
  const Tensor x = leaf();
  const Tensor y = x * 2.0;
  std::optional<std::string> refused;
  y.register_hook([&](const Tensor& gradient) {
    if (refused) return gradient;
    refused = "";
    std::thread([&] {
      try {
        sum(y).backward(BackwardOptions{.retain_graph = true});
      } catch (const AutogradError& error) {
        refused = error.what();
      }
    }).join();
    return gradient;
  });
  sum(y).backward();
  REQUIRE(refused);
  CHECK(refused->find("backward over one graph from two threads at once: MulBackward") != std::string::npos);
  CHECK(x.grad().to_vector<float>() == std::vector<float>{2, 2});
}

TEST_CASE("a checkpoint whose segment gives nothing, or its input") {
  const Tensor x = leaf();
  CHECK_THROWS_WITH_AS(autograd::checkpoint([](const Tensor&) { return Tensor(); }, x),
                       Contains("the segment returned an undefined tensor"), AutogradError);
  const Tensor y = autograd::checkpoint([](const Tensor& in) { return in; }, x);
  CHECK_FALSE(y.is_same(x));
  (sum(y) * 3.0).backward();
  CHECK(x.grad().to_vector<float>() == std::vector<float>{3, 3});
}

TEST_CASE("gradcheck asks for float64") {
  CHECK_THROWS_WITH_AS(autograd::gradcheck([](const Tensors& in) { return exp(in[0]); }, {leaf()}),
                       Contains("input 0 must be float64, got float32 [2]"), DTypeError);
}

TEST_CASE("only leaves are observed, and a gradient target looks like its leaf") {
  FirstNonFinite listener;
  const Tensor x = leaf();
  CHECK_THROWS_WITH_AS(autograd::observe(x * 2.0, listener, 0), Contains("got a result of MulBackward"), AutogradError);
  CHECK_THROWS_WITH_AS(autograd::set_grad_target(x, ones({3})), Contains("expected float32 [2], got float32 [3]"),
                       ShapeError);
  CHECK_FALSE(autograd::grad_target(x).defined());
  const Tensor target = zeros({2});
  autograd::set_grad_target(x, target);
  CHECK(autograd::grad_target(x).is_same(target));
}

TEST_CASE("a listener is informed of the first operation whose gradient is not finite, once") {
  const auto listener = std::make_shared<FirstNonFinite>();
  autograd::add_listener(listener);
  const Tensor x = leaf();
  sum(sqrt(exp(x))).backward();
  CHECK(listener->ops.empty());
  const Tensor zero = zeros({2}).requires_grad_();
  const Tensor second = sum(rsqrt(zero));
  (second + sum(sqrt(exp(log(sqrt(zero) * 2.0)) + 1.0))).backward();
  CHECK(listener->ops == std::vector<std::string>{"log"});
  const autograd::DetectAnomalyGuard guard;  // the listener hears of it before backward fails
  CHECK_THROWS_AS(sum(sqrt(zero) * 0.0).backward(), AutogradError);
  CHECK(listener->ops.back() == "sqrt");
}

TEST_CASE("grad() through a graph that is gone is refused, whatever else was asked for") {
  const Tensor unused = ones({2}).requires_grad_(), x = ones({2}).requires_grad_(), y = ones({2}).requires_grad_();
  const Tensor loss = (x * y * x).sum();
  loss.backward();
  const std::vector<Tensor> outputs{loss.sum()}, inputs{unused, y};
  CHECK_THROWS_WITH_AS(autograd::grad(outputs, inputs, {.allow_unused = true}),
                       doctest::Contains("Trying to backward through the graph a second time"), AutogradError);
}

}  // namespace brigade::test::backward_refusals_test
