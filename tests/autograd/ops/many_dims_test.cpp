// Every kind of operation on more dimensions than a Shape holds inline, compared with the same operation on fewer.
#include "compositions.h"

#include <functional>

namespace brigade::test::many_dims_test {
namespace {

using Op = std::function<Tensor(const Tensor&, int64_t dim)>;

// A leaf of 12 dimensions of size 1 to 3 in reverse memory order, so that neighbors cannot be merged.
Tensor scattered(uint64_t seed) {
  const Shape sizes{2, 3, 2, 2, 1, 2, 2, 2, 1, 2, 2, 3};
  Shape order, turned;
  for (int d = sizes.size() - 1; d >= 0; --d) {
    order.push_back(d);
    turned.push_back(sizes[d]);
  }
  RandomGenerator generator(seed);
  return randn(turned, {kFloat64}, &generator).permute(order).detach().requires_grad_();
}

// As [before, n, after].
Tensor merged(const Tensor& x, int dim) {
  int64_t before = 1;
  for (int d = 0; d < dim; ++d)
    before *= x.sizes()[d];
  return x.detach().clone().reshape({before, x.sizes()[dim], -1}).detach().requires_grad_();
}

// Values and gradients along each dimension.
void check_along(const char* name, const Op& op) {
  CAPTURE(name);
  for (const int dim : {0, 1, 4, 8, 11}) {
    CAPTURE(dim);
    const Tensor x = scattered(7);
    const Tensor few = merged(x, dim);
    const Tensor found = op(x, dim);
    const Tensor expected = op(few, 1);
    REQUIRE(found.numel() == expected.numel());
    CHECK(largest_difference(found.reshape({-1}), expected.reshape({-1})) < 1e-12);
    if (!found.requires_grad()) continue;
    (found * found).sum().backward();
    (expected * expected).sum().backward();
    CHECK(largest_difference(x.grad().reshape({-1}), few.grad().reshape({-1})) < 1e-11);
  }
}

}  // namespace

TEST_CASE("shapes: 64 dimensions, and one more is refused") {
  Shape sizes = Shape::filled(64, 1);
  sizes[63] = 3;
  const Shape copy = sizes;
  CHECK(copy == sizes);
  sizes.erase(0);
  CHECK(sizes.size() == 63);
  CHECK(sizes.back() == 3);
  CHECK(copy.size() == 64);
  Shape moved = std::move(sizes);
  moved.insert(0, 5);
  CHECK(moved.front() == 5);
  CHECK(moved.size() == 64);
  moved = Shape{2, 3};
  CHECK(moved == Shape{2, 3});
  moved = copy;
  CHECK(moved == copy);
  CHECK_THROWS_WITH_AS(moved.push_back(1), "a tensor has at most 64 dimensions", ShapeError);
  const Tensor x = ones(copy).requires_grad_();
  (x * 2).sum().backward();
  CHECK(x.grad().sizes() == copy);
  CHECK(x.grad().sum().item<double>() == 6);
  CHECK(x.sum({0, 63}).sizes() == Shape::filled(62, 1));
  CHECK(x.sum({62}).sizes().back() == 3);
  CHECK_THROWS_AS(x.unsqueeze(0), ShapeError);
}

TEST_CASE("twelve dimensions: operations along one of them") {
  check_along("sum", [](const Tensor& x, int64_t d) { return sum(x, {d}); });
  check_along("mean, kept", [](const Tensor& x, int64_t d) { return mean(x, {d}, true); });
  check_along("amax", [](const Tensor& x, int64_t d) { return amax(x, {d}); });
  check_along("argmin", [](const Tensor& x, int64_t d) { return argmin(x, d).to(kFloat64); });
  check_along("max", [](const Tensor& x, int64_t d) { return max(x, d).values; });
  check_along("prod", [](const Tensor& x, int64_t d) { return prod(x, {d}); });
  check_along("var", [](const Tensor& x, int64_t d) { return var(x, {d}, 0); });
  check_along("logsumexp", [](const Tensor& x, int64_t d) { return logsumexp(x, {d}); });
  check_along("vector_norm", [](const Tensor& x, int64_t d) { return vector_norm(x, 3, {d}); });
  check_along("softmax", [](const Tensor& x, int64_t d) { return softmax(x, d); });
  check_along("log_softmax", [](const Tensor& x, int64_t d) { return log_softmax(x, d); });
  check_along("cumsum", [](const Tensor& x, int64_t d) { return cumsum(x, d); });
  check_along("cumprod", [](const Tensor& x, int64_t d) { return cumprod(x, d); });
  check_along("sort", [](const Tensor& x, int64_t d) { return sort(x, d).values; });
  check_along("flip", [](const Tensor& x, int64_t d) { return flip(x, {d}); });
  check_along("roll", [](const Tensor& x, int64_t d) { return roll(x, {1}, {d}); });
  check_along("cat", [](const Tensor& x, int64_t d) { return cat({x, x * 2}, d); });
  check_along("narrow", [](const Tensor& x, int64_t d) { return x.narrow(d, 0, 1); });
  check_along("index_select", [](const Tensor& x, int64_t d) {
    return index_select(x, d, tensor<int64_t>({0, 0, x.size(d) - 1}));
  });
  check_along("gather", [](const Tensor& x, int64_t d) { return gather(x, d, zeros(x.sizes(), kInt64)); });
  check_along("repeat_interleave", [](const Tensor& x, int64_t d) { return repeat_interleave(x, 2, d); });
  check_along("unbind", [](const Tensor& x, int64_t d) { return unbind(x, d).back(); });
  check_along("stack", [](const Tensor& x, int64_t d) { return stack({x, x.exp()}, d); });
}

TEST_CASE("twelve dimensions: element by element, broadcast, reduced over several, indexed") {
  const Tensor x = scattered(1);
  const Tensor y = scattered(2);
  const Tensor flat = x.detach().clone().reshape({-1}).detach().requires_grad_();
  const Tensor flat_y = y.detach().clone().reshape({-1});
  const Tensor found = brigade::where(x > y, x * y, x.exp() + 0.5);
  const Tensor expected = brigade::where(flat > flat_y, flat * flat_y, flat.exp() + 0.5);
  CHECK(largest_difference(found.reshape({-1}), expected) < 1e-12);
  found.sum().backward();
  expected.sum().backward();
  CHECK(largest_difference(x.grad().reshape({-1}), flat.grad()) < 1e-12);

  // Along six dimensions; the sizes of the others, with 1 in between.
  Shape ones_between = x.sizes();
  for (int d = 0; d < 12; d += 2)
    ones_between[d] = 1;
  RandomGenerator generator(3);
  const Tensor small = randn(ones_between, {kFloat64}, &generator).requires_grad_();
  (x.detach() * small).sum().backward();
  const Tensor by_sum = x.detach().sum({0, 2, 4, 6, 8, 10}, true);
  CHECK(by_sum.sizes() == ones_between);
  CHECK(largest_difference(small.grad(), by_sum) < 1e-12);
  CHECK(std::abs(by_sum.sum().item<double>() - flat.detach().sum().item<double>()) < 1e-10);

  // select() removes dimensions 3 and 0, both of size 2; the other ten keep their order.
  const Tensor taken = x.detach().select(3, 1).select(0, 1);
  CHECK(taken.dim() == 10);
  CHECK(taken.index({2, 1, 0, 0, 1, 1, 0, 1, 0, 2}).item<double>() ==
        x.detach().index({1, 2, 1, 1, 0, 0, 1, 1, 0, 1, 0, 2}).item<double>());
  const Tensor places = nonzero((x.detach() == x.detach().max()));
  REQUIRE(places.sizes() == Shape{1, 12});
  Tensor at = x.detach();
  for (int64_t d = 0; d < 12; ++d)
    at = at.select(0, places.index({0, d}).item<int64_t>());
  CHECK(at.item<double>() == x.detach().max().item<double>());
}

TEST_CASE("ten dimensions: products and attention") {
  RandomGenerator generator(5);
  const Shape batch{2, 1, 2, 2, 1, 2, 1, 2};
  const auto sized = [&](int64_t rows, int64_t columns) {
    Shape sizes = batch;
    sizes.push_back(rows);
    sizes.push_back(columns);
    return sizes;
  };
  const Tensor a = randn(sized(3, 4), {kFloat64}, &generator).requires_grad_();
  const Tensor b = randn(sized(4, 5), {kFloat64}, &generator).requires_grad_();
  const Tensor c = matmul(a, b);
  CHECK(c.sizes() == sized(3, 5));
  CHECK(largest_difference(c.reshape({-1, 3, 5}), bmm(a.reshape({-1, 3, 4}), b.reshape({-1, 4, 5}))) < 1e-12);

  const Tensor left = randn({1, 2, 1, 1, 2, 2}, {kFloat64}, &generator);
  const Tensor right = randn({2, 1, 2, 1, 2, 1}, {kFloat64}, &generator);
  const Tensor product = kron(left, right);
  CHECK(product.sizes() == Shape{2, 2, 2, 1, 4, 2});
  CHECK(product.index({1, 1, 1, 0, 3, 1}).item<double>() ==
        left.index({0, 1, 0, 0, 1, 1}).item<double>() * right.index({1, 0, 1, 0, 1, 0}).item<double>());

  // Heads that share keys, and a mask with fewer dimensions that requires grad.
  Shape few_heads = sized(4, 4);
  few_heads[7] = 1;
  const Tensor q = randn(sized(3, 4), {kFloat64}, &generator).requires_grad_();
  const Tensor k = randn(few_heads, {kFloat64}, &generator).requires_grad_();
  const Tensor v = randn(few_heads, {kFloat64}, &generator).requires_grad_();
  const Tensor bias = randn({2, 1, 1, 1, 2, 3, 4}, {kFloat64}, &generator).requires_grad_();
  const Tensor scores = scaled_dot_product_attention(q, k, v, bias, 0, false, std::nullopt, true);
  CHECK(scores.sizes() == sized(3, 4));
  const Tensor composed = matmul(softmax(matmul(q, k.transpose(-1, -2)) / 2 + bias, -1), v);
  CHECK(largest_difference(scores, composed) < 1e-12);
  const Tensor used[] = {q, k, v, bias};
  const auto found = autograd::grad({(scores * scores).sum()}, {q, k, v, bias});
  const auto expected = autograd::grad({(composed * composed).sum()}, {q, k, v, bias});
  for (size_t i = 0; i < std::size(used); ++i)
    CHECK(largest_difference(found[i], expected[i]) < 1e-10);
  CHECK_THROWS_AS(scaled_dot_product_attention(q, k.select(0, 0), v), ShapeError);
}

}  // namespace brigade::test::many_dims_test
