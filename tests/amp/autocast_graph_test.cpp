// Autocast together with code that runs later or again: backward, checkpoints, custom functions, the tape.
#include <brigade/amp/autocast.h>
#include <brigade/autograd/checkpoint.h>
#include <brigade/autograd/function.h>
#include <brigade/autograd/functional.h>
#include <brigade/autograd/tape_query.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

namespace brigade::test::autocast_graph_test {

using amp::autocast;
using autograd::AutogradContext;
using Tensors = std::vector<Tensor>;
using Values = std::vector<double>;

Tensor weight() { return full({2, 2}, 2.0, kFloat32).requires_grad_(); }
Tensor matrix() { return ones({2, 2}); }

// What each function saw, in the order of the calls.
std::vector<DType> seen;

struct Noting : autograd::Function<Noting> {
  static Tensor forward(AutogradContext&, const Tensor& x) {
    seen.push_back(mm(x, x).dtype());
    return x.clone();
  }
  static Tensors backward(AutogradContext&, const Tensors& grads) {
    seen.push_back(mm(matrix(), matrix()).dtype());
    return {grads[0]};
  }
};

struct NotingInForwardsState : autograd::Function<NotingInForwardsState>, autograd::BackwardUnderAutocast {
  static Tensor forward(AutogradContext& ctx, const Tensor& x) { return Noting::forward(ctx, x); }
  static Tensors backward(AutogradContext& ctx, const Tensors& grads) { return Noting::backward(ctx, grads); }
};

struct NotingInFloat32 : autograd::Function<NotingInFloat32>, autograd::CastInputsUnderAutocast<kFloat32> {
  static Tensor forward(AutogradContext& ctx, const Tensor& x, const Tensor& exact, double) {
    seen.push_back(x.dtype());
    seen.push_back(exact.dtype());
    return Noting::forward(ctx, x);
  }
  static Tensors backward(AutogradContext& ctx, const Tensors& grads) {
    return {Noting::backward(ctx, grads)[0], Tensor(), Tensor()};
  }
};

TEST_CASE("backward runs outside of autocast, wherever it is called") {
  const Tensor w = weight();
  const autocast guard(kCPU, kBFloat16);
  DType in_hook = kBool;
  w.register_hook([&](const Tensor&) {
    in_hook = mm(matrix(), matrix()).dtype();
    return Tensor();
  });
  const Tensor y = mm(matrix(), w);
  y.sum().backward();
  CHECK(in_hook == kFloat32);
  CHECK(amp::is_autocast_enabled(kCPU));
  const Tensor again[] = {mm(matrix(), w).sum()};
  const Tensor with_respect_to[] = {w};
  CHECK(autograd::grad(again, with_respect_to)[0].dtype() == kFloat32);
  CHECK(in_hook == kFloat32);
}

TEST_CASE("a second derivative passes the casts") {
  const Tensor w = weight();
  Tensor y;
  {
    const autocast guard(kCPU, kBFloat16);
    y = mm(w, w).sum();
  }
  const Tensor roots[] = {y};
  const Tensor inputs[] = {w};
  const Tensor first = autograd::grad(roots, inputs, {.create_graph = true})[0];
  CHECK(first.dtype() == kFloat32);
  const Tensor total[] = {(first * first).sum()};
  const Tensor second = autograd::grad(total, inputs)[0];
  CHECK(first.to_vector<double>() == Values{8, 8, 8, 8});
  // g_ij = sum of row i and column j, w all 2: d/dw of the sum of squares is 2 * 8 * 4.
  CHECK(second.to_vector<double>() == Values{64, 64, 64, 64});
}

TEST_CASE("a checkpoint runs its segment again under the autocast state of its first run") {
  const Tensor w = weight();
  std::vector<DType> dtypes;
  const auto segment = [&](const Tensor& x) {
    const Tensor y = mm(x, w);
    dtypes.push_back(y.dtype());
    return y;
  };
  Tensor y;
  {
    const autocast guard(kCPU, kFloat16);
    y = autograd::checkpoint(segment, matrix());
  }
  const autocast other(kCPU, kBFloat16);
  y.sum().backward();
  CHECK(dtypes == std::vector<DType>{kFloat16, kFloat16});
  CHECK(w.grad().to_vector<double>() == Values{2, 2, 2, 2});
}

TEST_CASE("a checkpoint's edges lead to weights, and not to casts of them that were made before") {
  const Tensor w = weight();
  const autocast guard(kCPU, kBFloat16);
  const Tensor before = mm(matrix(), w);
  const Tensor y = autograd::checkpoint([&](const Tensor& in) { return mm(in, w); }, before);
  const autograd::Node& node = *autograd::grad_fn(y);
  REQUIRE(node.edges.size() == 2);
  CHECK(node.edges[0].node.get() == autograd::grad_fn(before));
  CHECK(node.edges[1].leaf.get() == w.impl());
}

TEST_CASE("casts of a checkpoint's input are not kept with those of weights") {
  const Tensor w = weight();
  const Tensor x = mm(matrix(), w);
  const autocast guard(kCPU, kBFloat16);
  const Tensor y = autograd::checkpoint([&](const Tensor& in) { return mm(in, w); }, x);
  CHECK(amp::autocast_cache_size() == 1);
  y.sum().backward();
  // d/dw of sum((1 w) w), where 1 is the matrix of ones and w is 2 everywhere.
  CHECK(w.grad().to_vector<double>() == Values{16, 16, 16, 16});
}

TEST_CASE("a checkpoint outside of autocast stays outside when its backward is inside") {
  const Tensor w = weight();
  std::vector<DType> dtypes;
  const Tensor y = autograd::checkpoint(
      [&](const Tensor& x) {
        const Tensor product = mm(x, w);
        dtypes.push_back(product.dtype());
        return product;
      },
      matrix());
  const autocast guard(kCPU, kBFloat16);
  y.sum().backward();
  CHECK(dtypes == std::vector<DType>{kFloat32, kFloat32});
}

TEST_CASE("a weight whose cast is kept already is still a parameter of a checkpoint's segment") {
  for (const bool cast_before : {false, true}) {
    const Tensor w = weight();
    Tensor y;
    {
      const autocast guard(kCPU, kBFloat16);
      Tensor x = matrix();
      if (cast_before) {
        x = mm(x, w).detach();
        const NoGradGuard no_grad;
        mm(x, w);
      }
      // Twice: the second finds the cast of the first.
      y = autograd::checkpoint([&](const Tensor& in) { return mm(in, w); }, x);
      y = autograd::checkpoint([&](const Tensor& in) { return mm(in, w); }, y);
    }
    REQUIRE(y.requires_grad());
    y.sum().backward();
    const double each = cast_before ? 64 : 16;
    CHECK(w.grad().to_vector<double>() == Values{each, each, each, each});
  }
}

TEST_CASE("a custom function's forward is cast as any code, its backward is not") {
  seen.clear();
  const Tensor x = weight();
  Tensor y;
  {
    const autocast guard(kCPU, kBFloat16);
    y = Noting::apply(x);
  }
  y.sum().backward();
  CHECK(seen == std::vector<DType>{kBFloat16, kFloat32});
}

TEST_CASE("a custom function may have its backward under the state of its forward") {
  seen.clear();
  const Tensor x = weight();
  Tensor y;
  {
    const autocast guard(kCPU, kFloat16);
    y = NotingInForwardsState::apply(x);
  }
  y.sum().backward();
  const Tensor outside = NotingInForwardsState::apply(x);
  const autocast guard(kCPU, kBFloat16);
  outside.sum().backward();
  CHECK(seen == std::vector<DType>{kFloat16, kFloat16, kFloat32, kFloat32});
}

TEST_CASE("a custom function may have its inputs in one dtype, and autocast off") {
  seen.clear();
  const Tensor x = full({2, 2}, 1.0, kBFloat16).requires_grad_();
  Tensor y;
  {
    const autocast guard(kCPU, kBFloat16);
    y = NotingInFloat32::apply(x, full({1}, 1.0, kFloat64), 1.5);
  }
  CHECK(y.dtype() == kFloat32);
  y.sum().backward();
  CHECK(seen == std::vector<DType>{kFloat32, kFloat64, kFloat32, kFloat32});
  CHECK(x.grad().dtype() == kBFloat16);
  // Outside of a region the declared dtype has no effect.
  seen.clear();
  CHECK(NotingInFloat32::apply(x, full({1}, 1.0, kFloat64), 1.5).dtype() == kBFloat16);
  CHECK(seen[0] == kBFloat16);
}

TEST_CASE("the tape says in which dtype a tensor was made, and where") {
  autograd::Tape::enable();
  const Tensor w = weight();
  std::string product, cast;
  {
    const autocast guard(kCPU, kFloat16);
    const Tensor y = mm(matrix(), w);
    product = autograd::explain_making(y);
    for (const autograd::Tape::Record& record : autograd::Tape::current()->records()) {
      if (autograd::Tape::current()->inputs(record)[0] == w.id())
        cast = std::string(record.op) + " in " + name(record.dtype) + " at " + to_string(record.where);
    }
    // The product's line is that of its casts.
    CHECK(product == "made in float16 by mm at amp/autocast_graph_test.cpp:" + std::to_string(__LINE__ - 7));
  }
  CHECK(cast == "autocast_to_float16 in float16 at" + product.substr(product.rfind(' ')));
  CHECK(autograd::explain_making(w) == "");
  autograd::Tape::disable();
  CHECK(autograd::explain_making(w) == "");
}

TEST_CASE("the tape hears of each use of a weight, also where its cast was kept") {
  autograd::Tape::enable();
  const Tensor w = weight();
  {
    const autocast guard(kCPU, kBFloat16);
    mm(matrix(), w);
    mm(matrix(), w);
    const NoGradGuard no_grad;
    mm(matrix(), w);
  }
  int uses = 0;
  for (const autograd::Tape::Record& record : autograd::Tape::current()->records()) {
    const auto inputs = autograd::Tape::current()->inputs(record);
    if (inputs.empty() || inputs[0] != w.id()) continue;
    ++uses;
    CHECK(std::string(record.op) == "autocast_to_bfloat16");
    CHECK(record.dtype == kBFloat16);
  }
  CHECK(uses == 3);
  autograd::Tape::disable();
}

}  // namespace brigade::test::autocast_graph_test
