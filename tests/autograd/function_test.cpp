// Custom functions: derivatives, allowed return values, and the errors for broken rules.
#include <brigade/autograd/function.h>
#include <brigade/autograd/functional.h>
#include <brigade/autograd/gradcheck.h>
#include <brigade/autograd/meta.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

#include <cmath>

namespace brigade::test::function_test {
using autograd::AutogradContext;
using autograd::Function;
using Tensors = std::vector<Tensor>;
using Values = std::vector<double>;

namespace {

Tensor leaf(Values values) { return tensor(values, {static_cast<int64_t>(values.size())}).requires_grad_(); }
Values values(const Tensor& x) { return x.to_vector<double>(); }

struct ScaledExp : Function<ScaledExp> {
  static Tensor forward(AutogradContext& ctx, const Tensor& x, double scale, const Tensor& shift) {
    const Tensor y = exp(x * scale + shift);
    ctx.save_for_backward({y});
    ctx.saved_data["scale"] = scale;
    return y;
  }
  static Tensors backward(AutogradContext& ctx, const Tensors& grads) {
    const Tensor y = ctx.get_saved_variables()[0];
    const double scale = std::any_cast<double>(ctx.saved_data.at("scale"));
    return {grads[0] * y * scale, Tensor(), ctx.needs_input_grad(2) ? grads[0] * y : Tensor()};
  }
};

// Two results; the second is not differentiable.
struct SquareAndSign : Function<SquareAndSign> {
  static Tensors forward(AutogradContext& ctx, const Tensor& x) {
    ctx.save_for_backward({x});
    Tensors results{x * x, sign(x)};
    ctx.mark_non_differentiable({results[1]});
    return results;
  }
  static Tensors backward(AutogradContext& ctx, const Tensors& grads) {
    CHECK(grads.size() == 2);
    CHECK(values(grads[1]) == Values(grads[1].numel(), 0.0));
    return {grads[0] * ctx.get_saved_variables()[0] * 2.0};
  }
};

struct Double_ : Function<Double_> {
  static Tensor forward(AutogradContext& ctx, const Tensor& x) {
    x.mul_(2.0);
    ctx.mark_dirty({x});
    return x;
  }
  static Tensors backward(AutogradContext&, const Tensors& grads) { return {grads[0] * 2.0}; }
};

struct Identity : Function<Identity> {
  static Tensor forward(AutogradContext&, const Tensor& x) { return x; }
  static Tensors backward(AutogradContext&, const Tensors& grads) { return {grads[0] * 7.0}; }
};

template <int kResults>
struct Wrong : Function<Wrong<kResults>> {
  static Tensor forward(AutogradContext&, const Tensor& x, double) { return x * 1.0; }
  static Tensors backward(AutogradContext&, const Tensors& grads) { return Tensors(kResults, grads[0]); }
};

// Returns float64 gradients of the result's shape, even for operands that were broadcast.
struct Product : Function<Product> {
  static Tensor forward(AutogradContext& ctx, const Tensor& a, const Tensor& b) {
    ctx.save_for_backward({Tensor(), a, b});
    return a * b;
  }
  static Tensors backward(AutogradContext& ctx, const Tensors& grads) {
    const Tensors saved = ctx.get_saved_variables();
    CHECK(saved.size() == 3);
    CHECK_FALSE(saved[0].defined());
    return {grads[0] * saved[2], grads[0] * saved[1]};
  }
};

// Writes to its second argument.
struct AddTo : Function<AddTo> {
  static Tensor forward(AutogradContext& ctx, const Tensor& x, const Tensor& to) {
    to.add_(x * 3.0);
    ctx.mark_dirty({to});
    return to;
  }
  static Tensors backward(AutogradContext&, const Tensors& grads) { return {grads[0] * 3.0, grads[0]}; }
};

struct DoubleAndCopy : Function<DoubleAndCopy> {
  static Tensors forward(AutogradContext& ctx, const Tensor& x) {
    x.mul_(2.0);
    ctx.mark_dirty({x});
    return {x, x * 1.0};
  }
  static Tensors backward(AutogradContext&, const Tensors& grads) { return {(grads[0] + grads[1]) * 2.0}; }
};

struct Undefined : Function<Undefined> {
  static Tensors forward(AutogradContext& ctx, const Tensor& x) {
    ctx.set_materialize_grads(false);
    return {x * 1.0, x * 2.0};
  }
  static Tensors backward(AutogradContext&, const Tensors& grads) {
    CHECK_FALSE(grads[0].defined());
    return {grads[1] * 2.0};
  }
};

struct Both : Function<Both> {
  static Tensors forward(AutogradContext&, const Tensor& x) { return {x * 1.0, x * 2.0}; }
  static Tensors backward(AutogradContext&, const Tensors& grads) { return {grads[0] + grads[1] * 2.0}; }
};

}  // namespace

TEST_CASE("a custom function has first and second derivatives") {
  const Tensor x = leaf({0.3, -0.7});
  const Tensor shift = leaf({0.1, 0.2});
  const auto function = [](const Tensors& in) { return ScaledExp::apply(in[0], 1.5, in[1]); };
  const auto first = autograd::gradcheck(function, {x, shift});
  CHECK_MESSAGE(first.ok, first.report);
  const auto second = autograd::gradgradcheck(function, {x, shift});
  CHECK_MESSAGE(second.ok, second.report);
  // Only one argument requires a gradient.
  const Tensor plain = shift.detach();
  x.set_grad(Tensor());
  const unsigned line = std::source_location::current().line() + 1;
  const Tensor y = ScaledExp::apply(x, 2.0, plain);
  CHECK(autograd::grad_fn(y)->where.line() == line);
  CHECK(std::string(autograd::grad_fn(y)->op) == "ScaledExp");
  sum(y).backward();
  CHECK(values(x.grad())[0] == doctest::Approx(2 * std::exp(0.7)));
  CHECK_FALSE(ScaledExp::apply(plain, 2.0, plain).requires_grad());
}

TEST_CASE("several results, one of them without a derivative") {
  const Tensor x = leaf({3, -2});
  const Tensors results = SquareAndSign::apply(x);
  CHECK(results[0].requires_grad());
  CHECK_FALSE(results[1].requires_grad());
  sum(results[0] * results[1]).backward();
  CHECK(values(x.grad()) == Values{6, 4});
}

TEST_CASE("grad with respect to the second result of an operation") {
  const Tensor x = leaf({1, -2});
  const Tensors y = Both::apply(x), outputs{sum(y[0] + y[1] * 5.0)};
  const Tensors gradients = autograd::grad(outputs, {{y[1], y[0]}});
  CHECK(values(gradients[0]) == Values{5, 5});
  CHECK(values(gradients[1]) == Values{1, 1});
}

TEST_CASE("results that were never used come as zeros, or undefined when asked for") {
  const Tensor x = leaf({3});
  Undefined::apply(x)[1].backward();
  CHECK(values(x.grad()) == Values{2});
}

TEST_CASE("a function that writes to its input") {
  const Tensor x = leaf({3});
  const Tensor y = x * 1.0;
  const Tensor view = y.slice(0, 0, 1);
  const uint32_t version = y.version();
  const Tensor z = Double_::apply(y);
  CHECK(z.is_same(y));
  CHECK(y.version() > version);
  (view * view).backward();
  CHECK(values(x.grad()) == Values{2 * 6 * 2});
  CHECK_THROWS_WITH_AS(Double_::apply(x), doctest::Contains("a leaf Variable that requires grad"), AutogradError);
}

TEST_CASE("a function that writes to a view changes its base, and what went through either has the right gradient") {
  const Tensor x = leaf({1, 2, 3, 4});
  const Tensor base = x * 1.0;
  const Tensor view = base.slice(0, 1, 3);
  CHECK(Double_::apply(view).is_same(view));
  CHECK(values(base) == Values{1, 4, 6, 4});
  (base * tensor(Values{1, 10, 100, 1000}, {4})).sum().backward();
  CHECK(values(x.grad()) == Values{1, 20, 200, 1000});

  // Writes to the second of two arguments, then runs again on its own result; the first argument also gets its
  // gradient.
  const Tensor a = leaf({5, 7}), b = leaf({1, 2, 3});
  const Tensor whole = b * 1.0;
  const Tensor part = whole.slice(0, 0, 2);
  const Tensor once = AddTo::apply(a, part);
  AddTo::apply(once, part);
  CHECK(values(whole) == Values{1 + 15 + 3 * 16, 2 + 21 + 3 * 23, 3});
  (whole * tensor(Values{1, 10, 100}, {3})).sum().backward();
  CHECK(values(b.grad()) == Values{4, 40, 100});
  CHECK(values(a.grad()) == Values{12, 120});

  const Tensor pair = x * 1.0;
  CHECK_THROWS_WITH_AS(DoubleAndCopy::apply(pair.slice(0, 0, 2)), doctest::Contains("with 2 results"), AutogradError);
  const Tensor of_leaf = leaf({1, 2});
  CHECK_THROWS_WITH_AS(Double_::apply(of_leaf.slice(0, 0, 1)), doctest::Contains("a view of a leaf Variable"),
                       AutogradError);
}

TEST_CASE("a gradient is summed to the shape of an argument that was broadcast; undefined tensors may be saved") {
  const Tensor a = leaf({2, 3, 4}), b = tensor(Values{5, 7}, {2, 1}).requires_grad_();
  const auto product = [](const std::vector<Tensor>& in) { return Product::apply(in[0], in[1]); };
  product({a, b}).sum().backward();
  CHECK(values(a.grad()) == Values{12, 12, 12});
  CHECK(b.grad().sizes() == Shape{2, 1});
  CHECK(values(b.grad()) == Values{9, 9});
  const Tensor wrong = leaf({1, 2, 3});
  struct Fixed : Function<Fixed> {
    static Tensor forward(AutogradContext&, const Tensor& x) { return x * 1.0; }
    static Tensors backward(AutogradContext&, const Tensors&) { return {ones({2}, kFloat64)}; }
  };
  CHECK_THROWS_AS(Fixed::apply(wrong).sum().backward(), Error);
}

TEST_CASE("an input that is handed through is a new tensor") {
  const Tensor x = leaf({3});
  const Tensor y = Identity::apply(x);
  CHECK_FALSE(y.is_same(x));
  y.backward();
  CHECK(values(x.grad()) == Values{7});
}

TEST_CASE("breaking the rules is named") {
  const Tensor x = leaf({3});
  CHECK_THROWS_WITH_AS(Wrong<1>::apply(x, 1.0).backward(),
                       doctest::Contains("returned an incorrect number of gradients (expected 2, got 1)"),
                       AutogradError);
  CHECK_THROWS_WITH_AS(Wrong<3>::apply(x, 1.0).backward(), doctest::Contains("(expected 2, got 3)"), AutogradError);
  CHECK_THROWS_WITH_AS(Wrong<2>::apply(x, 1.0).backward(),
                       doctest::Contains("returned a gradient different from None at position 2"), AutogradError);
  AutogradContext ctx;
  CHECK_THROWS_WITH_AS(ctx.get_saved_variables(), doctest::Contains("is for backward"), AutogradError);
}

TEST_CASE("what a custom function saved is guarded and freed like the rest") {
  const Tensor x = leaf({3});
  const Tensor input = x * 1.0;
  const Tensors results = SquareAndSign::apply(input);
  input.mul_(2.0);
  CHECK_THROWS_WITH_AS(results[0].backward(), doctest::Contains("modified by an inplace operation"), AutogradError);
  const Tensor y = ScaledExp::apply(x, 1.0, x);
  y.backward();
  CHECK_THROWS_WITH_AS(y.backward(), doctest::Contains("a second time"), AutogradError);
}

}  // namespace brigade::test::function_test
