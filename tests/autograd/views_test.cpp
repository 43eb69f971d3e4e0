// Views and in-place writes: histories, errors, and gradients; expected values follow PyTorch's rules.
#include <brigade/autograd/functional.h>
#include <brigade/autograd/meta.h>
#include <brigade/autograd/tape_query.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

namespace brigade::test::views_test {
namespace {

Tensor leaf(std::vector<double> values) {
  return tensor(values, {static_cast<int64_t>(values.size())}).requires_grad_();
}
std::vector<double> grad_of(const Tensor& x) { return x.grad().to_vector<double>(); }
using Values = std::vector<double>;
Values values(const Tensor& x) { return x.to_vector<double>(); }

}  // namespace

TEST_CASE("a write through a view reaches the base and its other views") {
  const Tensor x = leaf({1, 2, 3, 4});
  const Tensor y = x * 2.0;
  const Tensor even = y.slice(0, 0, 4, 2);
  const Tensor back = y.slice(0, 2, 4);
  even.mul_(3.0);
  CHECK(y.to_vector<double>() == Values{6, 4, 18, 8});
  CHECK(std::string(autograd::grad_fn(y)->op) == "mul_");
  CHECK(std::string(autograd::grad_fn(even)->op) == "as_strided");
  sum(back * back).backward();  // (6 x2)^2 + (2 x3)^2
  CHECK(grad_of(x) == Values{0, 0, 72 * 3, 8 * 4});
}

TEST_CASE("a plain tensor becomes a result when a view of it is written with a gradient") {
  const Tensor x = leaf({1, 2});
  const Tensor all = zeros({2, 2}, kFloat64);
  const Tensor row = all.select(0, 1);
  CHECK_FALSE(all.requires_grad());
  row.copy_(x);
  CHECK(all.requires_grad());
  CHECK_FALSE(all.is_leaf());
  CHECK(row.requires_grad());
  sum(all * all).backward();
  CHECK(grad_of(x) == Values{2, 4});
}

TEST_CASE("an earlier view of a plain tensor requires grad once the tensor does") {
  const Tensor x = leaf({1, 2});
  const Tensor all = zeros({2}, kFloat64);
  const Tensor view = all.slice(0, 1, 2);
  CHECK_FALSE(view.requires_grad());
  CHECK(view.is_leaf());
  all.add_(x);
  CHECK(view.requires_grad());
  CHECK_FALSE(view.is_leaf());
  sum(view * 5.0).backward();
  CHECK(grad_of(x) == Values{0, 5});
}

TEST_CASE("an operand in the written memory is read as it was before") {
  const Tensor x = leaf({2, 3});
  const Tensor y = x * 1.0;
  y.mul_(y);
  sum(y).backward();
  CHECK(grad_of(x) == Values{4, 6});

  const Tensor z = leaf({1, 2, 3});
  const Tensor w = z * 1.0;
  w.slice(0, 1, 3).add_(w.slice(0, 0, 2));
  CHECK(w.to_vector<double>() == Values{1, 3, 5});
  sum(w * tensor<double>({1, 10, 100})).backward();
  CHECK(grad_of(z) == Values{11, 110, 100});
}

TEST_CASE("writes that the graph cannot carry are errors") {
  const Tensor x = leaf({1, 2});
  CHECK_THROWS_WITH_AS(x.add_(x), doctest::Contains("a leaf Variable that requires grad is being used in an in-place"),
                       AutogradError);
  CHECK_THROWS_WITH_AS(x.slice(0, 0, 1).add_(x), doctest::Contains("a view of a leaf Variable that requires grad"),
                       AutogradError);
  CHECK(x.to_vector<double>() == Values{1, 2});

  const Tensor y = x * 1.0;
  Tensor view;
  {
    const NoGradGuard no_grad;
    view = y.slice(0, 0, 1);
  }
  CHECK_THROWS_WITH_AS(view.mul_(2.0), doctest::Contains("A view was created in no_grad mode and is being modified"),
                       AutogradError);
  CHECK_THROWS_WITH_AS(y.expand({3, 2}).mul_(2.0),
                       doctest::Contains("more than one element of the written-to tensor refers to a single memory"),
                       ValueError);
  CHECK_THROWS_WITH_AS(div_(y, ones({3, 2}, kFloat64)),
                       doctest::Contains("output with shape [2] doesn't match the broadcast shape [3, 2]"), ShapeError);
  CHECK(y.to_vector<double>() == Values{1, 2});
}

TEST_CASE("what backward needs must not be written to, through whichever view") {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 1.0;
  const Tensor z = y * y;
  y.slice(0, 0, 1).mul_(2.0);
  CHECK_THROWS_WITH_AS(sum(z).backward(), doctest::Contains("modified by an inplace operation"), AutogradError);
}

TEST_CASE("a second backward through a write is refused, and allowed with retain_graph") {
  const Tensor x = leaf({1, 2});
  const Tensor f = leaf({5});
  const Tensor y = x * 1.0;
  y.slice(0, 0, 1).mul_(f);
  const Tensor loss = sum(y);
  loss.backward({.retain_graph = true});
  loss.backward();
  CHECK(grad_of(x) == Values{10, 2});
  CHECK(grad_of(f) == Values{2});
  CHECK_THROWS_WITH_AS(loss.backward(), doctest::Contains("Trying to backward through the graph a second time"),
                       AutogradError);
}

TEST_CASE("retain_grad follows the value of a tensor over a write") {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 3.0;
  y.retain_grad();
  y.mul_(2.0);
  sum(y * y).backward();
  CHECK(grad_of(y) == Values{12, 24});  // w.r.t. the value after the write
  CHECK(grad_of(x) == Values{72, 144});
}

TEST_CASE("retain_grad follows a view and its base over a write through the view") {
  const Tensor x = leaf({1, 2});
  const Tensor base = x * 3.0;
  const Tensor first = base.slice(0, 0, 1);
  base.retain_grad();
  first.retain_grad();
  first.mul_(2.0);
  (sum(base * base) + sum(first * 4.0)).backward();
  CHECK(grad_of(base) == Values{16, 12});
  CHECK(grad_of(first) == Values{4});
  CHECK(grad_of(x) == Values{96, 36});
}

TEST_CASE("retain_grad follows a view over a write to its base, or through another view of it") {
  for (const bool through_base : {true, false}) {
    CAPTURE(through_base);
    const Tensor x = leaf({1, 2});
    const Tensor base = x * 2;
    const Tensor first = base.slice(0, 0, 1);
    first.retain_grad();
    (through_base ? base : base.slice(0, 0, 2)).mul_(3);
    (first.sum() * 5 + base.sum()).backward();
    CHECK(values(first.grad()) == Values{5});
    CHECK(values(x.grad()) == Values{36, 6});
  }
}

TEST_CASE("retain_grad adds up over backwards, until the gradient is cleared") {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 2;
  y.retain_grad();
  const Tensor z = sum(y * y);
  z.backward({.retain_graph = true});
  CHECK(values(y.grad()) == Values{4, 8});
  const Tensor once = y.grad();
  z.backward({.retain_graph = true});
  CHECK(values(y.grad()) == Values{8, 16});
  CHECK(values(once) == Values{4, 8});
  y.set_grad({});
  z.backward({.retain_graph = true});
  CHECK(values(y.grad()) == Values{4, 8});
  y.grad().zero_();
  z.backward();
  CHECK(values(y.grad()) == Values{4, 8});
}

TEST_CASE("retain_grad keeps what all hooks have made of the gradient, before or after they were registered") {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 2;
  const auto tenfold = [](const Tensor& grad) { return grad * 10; };
  y.register_hook(tenfold);
  y.retain_grad();
  const uint64_t last = y.register_hook(tenfold);
  const Tensor z = sum(y * 3);
  z.backward({.retain_graph = true});
  CHECK(values(y.grad()) == Values{300, 300});
  CHECK(values(x.grad()) == Values{600, 600});
  y.remove_hook(last);
  z.backward();
  CHECK(values(y.grad()) == Values{330, 330});
}

TEST_CASE("a retained gradient has a history where the backward makes one") {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 2;
  y.retain_grad();
  sum(y * y * y).backward({.create_graph = true});
  CHECK(values(y.grad()) == Values{12, 48});
  CHECK(y.grad().requires_grad());
  // A gradient with a history and its tensor own each other: break the cycle.
  x.set_grad(Tensor());
  y.set_grad(Tensor());
}

TEST_CASE("a view takes the history of its base once for each write") {
  const Tensor x = leaf({1, 2});
  const Tensor base = x * 3.0;
  const Tensor first = base.slice(0, 0, 1);
  base.mul_(2.0);
  const Tensor y = first * 1.0;
  const autograd::Node* const past = autograd::grad_fn(first);
  const Tensor z = first * 1.0;
  CHECK(autograd::grad_fn(first) == past);
}

TEST_CASE("the gradient of a base with transposed memory that was written to through a view") {
  const Tensor x = leaf({1, 2, 3, 4});
  const Tensor base = zeros({2, 2}, kFloat64).t().detach();  // not a view, and not contiguous
  base.copy_(x.reshape({2, 2}));
  base.select(0, 1).mul_(10.0);
  const Tensor weights = tensor(Values{1, 2, 3, 4}, {2, 2});
  sum(base * weights).backward();
  CHECK(grad_of(x) == Values{1, 2, 30, 40});
}

TEST_CASE("views of a base that is gone keep what they need and no more") {
  const Tensor x = leaf({1, 2, 3});
  Tensor view;
  {
    const Tensor base = x * 2.0;
    view = base.slice(0, 1, 3);
    base.mul_(x);
  }
  sum(view).backward();
  CHECK(grad_of(x) == Values{0, 8, 12});
  // A view that is an operand of a write to its own base creates no reference cycle: its memory is freed with its
  // handles.
  const uint64_t before = cpu_allocator_stats().bytes_in_use;
  {
    const Tensor base = x * 2.0;
    const Tensor part = base.slice(0, 0, 1);
    base.mul_(part.expand({3}));
  }
  CHECK(cpu_allocator_stats().bytes_in_use == before);
}

TEST_CASE("the tape follows a parameter into a tensor that was written through a view") {
  autograd::Tape::enable();
  const Tensor x = leaf({1, 2});
  const Tensor all = zeros({4}, kFloat64);
  const Tensor second_half = all.slice(0, 2, 4);
  all.slice(0, 0, 2).copy_(x);
  const Tensor roots[] = {sum(second_half)};
  const autograd::Fate fate = autograd::BackwardOnTape(*autograd::Tape::current(), roots).trace(x.id());
  autograd::Tape::disable();
  CHECK(fate.kind == autograd::Fate::Kind::Reached);
}

}  // namespace brigade::test::views_test
