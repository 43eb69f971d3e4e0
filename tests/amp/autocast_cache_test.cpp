// The cache of weight casts: a weight is cast once per outermost region, and a cached cast never loses a gradient.
#include <brigade/amp/autocast.h>
#include <brigade/autograd/functional.h>
#include <brigade/autograd/meta.h>
#include <brigade/kernels/factory.h>
#include <brigade/optim/sgd.h>

#include <doctest/doctest.h>

namespace brigade::test::autocast_cache_test {

using amp::autocast;
using Values = std::vector<double>;

Tensor weight() { return full({2, 2}, 2.0, kFloat32).requires_grad_(); }
Tensor matrix() { return ones({2, 2}); }

TEST_CASE("a weight is cast once, also in nested regions, and its casts go with the outermost") {
  const Tensor w = weight();
  const uint32_t references = w.use_count();
  {
    const autocast guard(kCPU, kBFloat16);
    const Tensor first = mm(matrix(), w);
    CHECK(amp::autocast_cache_size() == 1);
    {
      const autocast inner(kCPU);
      const Tensor second = mm(matrix(), w);
      CHECK(amp::autocast_cache_size() == 1);
      // Both products have the same cast behind them.
      CHECK(autograd::grad_fn(first)->edges[1].node.get() == autograd::grad_fn(second)->edges[1].node.get());
    }
    CHECK(amp::autocast_cache_size() == 1);
  }
  CHECK(amp::autocast_cache_size() == 0);
  CHECK(w.use_count() == references);
}

TEST_CASE("the gradients of all uses come through the one cast") {
  const Tensor w = weight();
  Tensor y;
  {
    const autocast guard(kCPU, kBFloat16);
    y = mm(mm(matrix(), w), w);
  }
  y.sum().backward();
  CHECK(w.grad().dtype() == kFloat32);
  CHECK(w.grad().to_vector<double>() == Values{16, 16, 16, 16});
}

TEST_CASE("two backwards through one cast: each loss has its own") {
  const Tensor w = weight();
  const autocast guard(kCPU, kFloat16);
  const Tensor first = mm(matrix(), w).sum();
  const Tensor second = mm(matrix(), w).sum();
  first.backward();
  second.backward();
  CHECK(w.grad().to_vector<double>() == Values{4, 4, 4, 4});
}

TEST_CASE("inputs, frozen weights, results and views are not kept") {
  const autocast guard(kCPU, kBFloat16);
  const Tensor w = weight();
  mm(matrix(), matrix());
  mm(matrix(), w * 1.0);
  mm(matrix(), w.t());
  CHECK(amp::autocast_cache_size() == 0);
}

TEST_CASE("without the cache each use casts") {
  const Tensor w = weight();
  const autocast guard(kCPU, kBFloat16, true, false);
  CHECK_FALSE(amp::is_autocast_cache_enabled());
  const Tensor y = mm(mm(matrix(), w), w);
  CHECK(amp::autocast_cache_size() == 0);
  y.sum().backward();
  CHECK(w.grad().to_vector<double>() == Values{16, 16, 16, 16});
  const autocast inner(kCPU, kBFloat16, true, true);
  mm(matrix(), w);
  CHECK(amp::autocast_cache_size() == 1);
}

TEST_CASE("a cast made under no_grad is not used where gradients are wanted") {
  const Tensor w = weight();
  const autocast guard(kCPU, kBFloat16);
  {
    const NoGradGuard no_grad;
    CHECK_FALSE(mm(matrix(), w).requires_grad());
  }
  const Tensor y = mm(matrix(), w);
  REQUIRE(y.requires_grad());
  {
    const NoGradGuard no_grad;
    CHECK_FALSE(mm(matrix(), w).requires_grad());  // a cast with history may be used here
  }
  CHECK(amp::autocast_cache_size() == 1);
  y.sum().backward();
  CHECK(w.grad().to_vector<double>() == Values{2, 2, 2, 2});
}

TEST_CASE("a weight that was written to is cast again") {
  const Tensor w = weight();
  const autocast guard(kCPU, kBFloat16);
  CHECK(mm(matrix(), w).to_vector<double>() == Values{4, 4, 4, 4});
  {
    const NoGradGuard no_grad;
    w.fill_(3.0);
  }
  CHECK(mm(matrix(), w).to_vector<double>() == Values{6, 6, 6, 6});
}

TEST_CASE("a weight that an optimizer has moved inside of the region is cast again") {
  const Tensor w = weight();
  optim::SGD optimizer({w}, {.lr = 0.5});
  const autocast guard(kCPU, kBFloat16);
  mm(matrix(), w).sum().backward();
  optimizer.step();  // the gradient is 2
  CHECK(mm(matrix(), w).to_vector<double>() == Values{2, 2, 2, 2});
}

TEST_CASE("the cache can be cleared inside of a region") {
  const Tensor w = weight();
  const autocast guard(kCPU, kBFloat16);
  mm(matrix(), w);
  amp::clear_autocast_cache();
  CHECK(amp::autocast_cache_size() == 0);
  mm(matrix(), w);
  CHECK(amp::autocast_cache_size() == 1);
}

}  // namespace brigade::test::autocast_cache_test
