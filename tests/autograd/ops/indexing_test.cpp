// Indexed reads, writes, and selection, as in PyTorch; rows without a gradient; cumulative products with zeros.
#include <near.h>

#include <brigade/autograd/functional.h>
#include <brigade/autograd/gradcheck.h>
#include <brigade/autograd/ops/indexing.h>
#include <brigade/core/factory.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

#include <cmath>

namespace brigade::test::indexing_test {
namespace {

using Values = std::vector<float>;
Values values(const Tensor& x) { return x.to_vector<float>(); }
Tensor counted(const Shape& sizes) {
  return arange(0, static_cast<double>(sizes.numel()), 1, {kFloat32}).reshape(sizes);
}

}  // namespace

TEST_CASE("several tensors of places take element by element, where the first stands or in front") {
  using namespace indexing;
  const Tensor x = counted({3, 4, 5});
  const Tensor rows = tensor<int64_t>({2, 0}), columns = tensor<int64_t>({1, -1});
  const auto at = [](int64_t i, int64_t j, int64_t k) { return static_cast<float>((i * 4 + j) * 5 + k); };
  CHECK(values(x.index({rows, columns}).select(1, 3)) == Values{at(2, 1, 3), at(0, 3, 3)});
  CHECK(values(x.index({rows, columns, 2})) == Values{at(2, 1, 2), at(0, 3, 2)});
  CHECK(values(x.index({2, rows, columns})) == Values{at(2, 2, 1), at(2, 0, 4)});
  // Adjacent index tensors keep their position; separated ones, including those separated by None, move to the front.
  CHECK(x.index({Slice(), rows, columns}).sizes() == Shape{3, 2});
  CHECK(values(x.index({Slice(), rows, columns})) ==
        Values{at(0, 2, 1), at(0, 0, 4), at(1, 2, 1), at(1, 0, 4), at(2, 2, 1), at(2, 0, 4)});
  CHECK(x.index({rows, Slice(), columns}).sizes() == Shape{2, 4});
  CHECK(x.index({rows, Slice(), columns}).select(1, 1).to_vector<float>() == Values{at(2, 1, 1), at(0, 1, 4)});
  CHECK(x.index({Slice(), rows, None, columns}).sizes() == Shape{2, 3, 1});
  CHECK(x.index({rows, 1, columns}).sizes() == Shape{2});
  // Index tensors broadcast to a grid. int32 indices, and masks of one and of several dimensions next to index tensors.
  const Tensor grid = x.index({rows.unsqueeze(1), columns.to(kInt32), "..."});
  CHECK(grid.sizes() == Shape{2, 2, 5});
  CHECK(grid.select(0, 1).select(0, 1).to_vector<float>() ==
        Values{at(0, 3, 0), at(0, 3, 1), at(0, 3, 2), at(0, 3, 3), at(0, 3, 4)});
  const Tensor two_of_three = tensor<bool>({true, false, true});
  CHECK(values(x.index({two_of_three, columns, 0})) == Values{at(0, 1, 0), at(2, 3, 0)});
  CHECK(x.index({x.select(2, 0) >= 30.0}).sizes() == Shape{6, 5});
  CHECK(x.index({"...", x.select(0, 0) >= 10.0}).sizes() == Shape{3, 10});
  CHECK(x.index({tensor<int64_t>({}), rows.slice(0, 0, 1)}).sizes() == Shape{0, 5});
  // A row that is indexed twice gets the sum of both gradients.
  const Tensor leaf = counted({2, 2}).requires_grad_();
  (leaf.index({tensor<int64_t>({1, 1, 0}), tensor<int64_t>({0, 0, 1})}) * tensor<float>({1, 2, 4})).sum().backward();
  CHECK(values(leaf.grad()) == Values{0, 4, 3, 0});
}

TEST_CASE("index_put_ writes at places and masks, and its gradients are those of what stays and of the value") {
  using namespace indexing;
  const Tensor rows = tensor<int64_t>({2, 0}), columns = tensor<int64_t>({1, -1});
  Tensor x = zeros({3, 4});
  x.index_put_({rows, columns}, tensor<float>({5, 6}));
  CHECK(values(x) == Values{0, 0, 0, 6, 0, 0, 0, 0, 0, 5, 0, 0});
  x.index_put_({rows}, 1.0);
  CHECK(values(x) == Values{1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1});
  x.index_put_({Slice(), columns}, tensor(Values{7, 8, 9}, {1, 3, 1}));  // broadcast after its leading 1 is dropped
  CHECK(values(x) == Values{1, 7, 1, 7, 0, 8, 0, 8, 1, 9, 1, 9});
  x.index_put_({ge(x, 8.0)}, tensor<float>({1, 2, 3, 4}));
  CHECK(values(x) == Values{1, 7, 1, 7, 0, 1, 0, 2, 1, 3, 1, 4});
  const Tensor cube = zeros({2, 3, 2});
  cube.index_put_({tensor<int64_t>({0, 1}), Slice(), tensor<int64_t>({1, 0})},
                  tensor(Values{1, 2, 3, 4, 5, 6}, {2, 3}));
  CHECK(values(cube) == Values{0, 1, 0, 2, 0, 3, 4, 0, 5, 0, 6, 0});
  CHECK_THROWS_AS(x.index_put_({rows, columns}, zeros({3})), ShapeError);

  const auto number = [](const Shape& sizes, int64_t first) {
    return arange(static_cast<double>(first), static_cast<double>(first + sizes.numel()), 1, {kFloat64})
               .reshape(sizes) *
           0.37;
  };
  const auto put = [&](const std::vector<Tensor>& in) {
    const Tensor y = in[0] * in[0];
    y.index_put_({rows, Slice(1, 3), columns}, in[1] * in[1]);
    return y * y;
  };
  const auto take = [&](const std::vector<Tensor>& in) {
    const Tensor y = in[0] * in[0];
    return y.index({Slice(), rows.unsqueeze(1), columns}) * in[1];
  };
  const std::vector<Tensor> to_put{number({3, 4, 2}, 1).requires_grad_(), number({2, 2}, 3).requires_grad_()};
  const std::vector<Tensor> to_take{number({2, 3, 4}, 1).requires_grad_(), number({2, 2, 2}, 3).requires_grad_()};
  CHECK(autograd::gradcheck(put, to_put).ok);
  CHECK(autograd::gradgradcheck(put, to_put).ok);
  CHECK(autograd::gradcheck(take, to_take).ok);
  CHECK(autograd::gradgradcheck(take, to_take).ok);
}

TEST_CASE("an index out of range is named with its dimension of the tensor that was indexed") {
  using namespace indexing;
  const Tensor x = zeros({4, 5, 6});
  CHECK_THROWS_WITH_AS(x.index({0, 5}),
                       doctest::Contains("index 5 is out of bounds for dimension 1 with size 5 (called at"),
                       IndexError);
  CHECK_THROWS_WITH_AS(x.index({0, 0, -7}), doctest::Contains("index -7 is out of bounds for dimension 2 with size 6"),
                       IndexError);
  CHECK_THROWS_WITH_AS(x.index({None, 0, "...", 6}),
                       doctest::Contains("index 6 is out of bounds for dimension 2 with size 6"), IndexError);
  CHECK_THROWS_WITH_AS(x.index({0, tensor<int64_t>({1, 2}), tensor<int64_t>({0, 6})}),
                       doctest::Contains("index 6 is out of bounds for dimension 2 with size 6"), IndexError);
  CHECK_THROWS_WITH_AS(x.index_put_({tensor<int64_t>({4})}, 1.0),
                       doctest::Contains("index 4 is out of bounds for dimension 0 with size 4"), IndexError);
  CHECK_THROWS_WITH_AS(x.index({tensor<int64_t>({1, 2}), tensor<int64_t>({0, 1, 2})}),
                       doctest::Contains("indexing tensors could not be broadcast together with shapes [2], [3]"),
                       IndexError);
  CHECK_THROWS_WITH_AS(x.index({0, 0, 0, 0}), doctest::Contains("too many indices for tensor of dimension 3"),
                       IndexError);
  CHECK_THROWS_WITH_AS(x.index({ones({4, 4}, kBool)}),
                       doctest::Contains("expected a mask whose sizes are those of dimensions 0"), ValueError);
}

TEST_CASE("a tensor of shape [0] joins tensors of any shape, and adds nothing") {
  const Tensor none = zeros({0}, kFloat64).requires_grad_(), x = counted({2, 3}).requires_grad_();
  const Tensor y = cat({none, x, none, x}, 1);
  CHECK(y.sizes() == Shape{2, 6});
  CHECK(y.dtype() == kFloat64);
  (y * 2.0).sum().backward();
  CHECK(values(x.grad()) == Values(6, 4));
  CHECK(none.grad().sizes() == Shape{0});
  CHECK(cat({zeros({0}), zeros({0})}).sizes() == Shape{0});
  CHECK(cat({zeros({0}), tensor<float>({1, 2})}).sizes() == Shape{2});
  CHECK_THROWS_AS(cat({zeros({0}), x}, 2), IndexError);
  CHECK_THROWS_WITH_AS(cat({zeros({0}), x, zeros({0, 2})}, 1),
                       doctest::Contains("tensor 2 has shape [0, 2], which differs from tensor 1 [2, 3]"), ShapeError);
}

TEST_CASE("take_along_dim broadcasts beside the dimension") {
  const Tensor x = counted({2, 3});
  CHECK(values(take_along_dim(x, tensor(std::vector<int64_t>{2, 0}, {2, 1}), 1)) == Values{2, 3});
  CHECK(values(take_along_dim(x, tensor(std::vector<int64_t>{2, 0}, {1, 2}), 1)) == Values{2, 0, 5, 3});
  CHECK(values(take_along_dim(x, tensor<int64_t>({5, 0}))) == Values{5, 0});
  CHECK(values(take_along_dim(x.slice(0, 0, 1), tensor(std::vector<int64_t>{2, 0}, {2, 1}), 1)) == Values{2, 0});
  CHECK_THROWS_AS(take_along_dim(x, tensor<int64_t>({1}), 1), ShapeError);
  CHECK_THROWS_AS(take_along_dim(x, zeros({3, 1}, kInt64), 1), ShapeError);
}

TEST_CASE("index_add scales what it adds; its errors name the call") {
  const Tensor y = index_add(zeros({2, 3}), 1, tensor<int64_t>({2, 0, 2}), ones({2, 3}), 2);
  CHECK(values(y) == Values{2, 0, 4, 2, 0, 4});
  CHECK_THROWS_WITH_AS(index_add(zeros({2, 3}), 1, tensor<int64_t>({3}), ones({2, 1})),
                       doctest::Contains("index_add: index 3 at position 0 is not a slice 0..2 (called at"),
                       IndexError);
  CHECK_THROWS_WITH_AS(gather(zeros({2}), 0, tensor<int64_t>({2})), doctest::Contains("indexing_test.cpp"), IndexError);
}

TEST_CASE("masked_select chooses in row-major order, and the gradient goes back there") {
  const Tensor x = counted({2, 3}).requires_grad_();
  const Tensor y = masked_select(x, tensor<bool>({true, false, true}));
  CHECK(values(y) == Values{0, 2, 3, 5});
  (y * tensor<float>({1, 2, 3, 4})).sum().backward();
  CHECK(values(x.grad()) == Values{1, 0, 2, 3, 0, 4});
  CHECK(masked_select(x, zeros({2, 3}, kBool)).sizes() == Shape{0});
  CHECK(values(masked_select(tensor<float>({7}), tensor<bool>({true, true, false}))) == Values{7, 7});
  CHECK(values(masked_select(counted({3, 2}).t(), tensor<bool>({false, true, true}))) == Values{2, 4, 3, 5});
  CHECK(values(masked_select(scalar_tensor(2.0), ones({}, kBool))) == Values{2});
  CHECK_THROWS_WITH_AS(masked_select(x, ones({2, 3})), doctest::Contains("expected a bool mask"), DTypeError);
  CHECK_THROWS_AS(masked_select(x, ones({4}, kBool)), ShapeError);
}

TEST_CASE("the row of padding_idx gets no gradient, in the first and in the second derivative") {
  const Tensor indices = tensor(std::vector<int64_t>{2, 1, 2, 0, 1, 2}, {2, 3});
  const Tensor slopes = arange(1, 7, 1, {kFloat32}).reshape({2, 3, 1});
  const Tensor weight = counted({4, 2}).requires_grad_();
  (embedding(indices, weight, 1) * slopes).sum().backward();
  CHECK(values(weight.grad()) == Values{4, 4, 0, 0, 10, 10, 0, 0});
  weight.set_grad({});
  (embedding(indices, weight, 1, true) * slopes).sum().backward();
  check_near(weight.grad(), {4, 4, 0, 0, 10.0 / 3, 10.0 / 3, 0, 0}, 1e-6);
  for (const bool scaled : {false, true}) {
    // d/d slopes of sum(v * d/d weight of sum(embedding * slopes)): v's rows, but none of the padding.
    const Tensor w = counted({4, 2}).requires_grad_();
    const Tensor s = slopes.expand({2, 3, 2}).clone().detach().requires_grad_();
    (embedding(indices, w, 1, scaled) * s).sum().backward({.create_graph = true});
    const Tensor gradient = w.grad();
    const double share = scaled ? 1.0 / 3 : 1, a = 4 * share, b = 5 * share;
    check_near(gradient, {4, 4, 0, 0, 10 * share, 10 * share, 0, 0}, 1e-6);
    s.set_grad({});
    (gradient * counted({4, 2})).sum().backward();
    check_near(s.grad(), {a, b, 0, 0, a, b, 0, 1, 0, 0, a, b}, 1e-6);
  }
}

TEST_CASE("the gradient of cumprod holds with one zero, with several, and through an infinity") {
  const Tensor slopes = arange(1, 6, 1, {kFloat32});
  const auto gradient = [&](const Values& x) {
    const Tensor leaf = tensor(x, {5}).requires_grad_();
    (cumprod(leaf, 0) * slopes).sum().backward();
    return values(leaf.grad());
  };
  CHECK(gradient({2, 0, 3, 0, 4}) == Values{1, 22, 0, 0, 0});
  CHECK(gradient({2, 0, 3, 4, 5}) == Values{1, 718, 0, 0, 0});
  CHECK(gradient({1, 2, 3, 4, 5}) == Values{719, 359, 238, 174, 120});
  CHECK(gradient({INFINITY, 3, -6, 1, 1}) == Values{-209, -INFINITY, INFINITY, -INFINITY, -INFINITY});
  const Values both = gradient({2, 0, 1, INFINITY, 1});  // 0 times infinity, but for these two
  CHECK(both[1] == INFINITY);
  CHECK(both[3] == 0);
  CHECK((std::isnan(both[0]) && std::isnan(both[2]) && std::isnan(both[4])));
}

TEST_CASE("the gradient of logcumsumexp, also where elements are -inf") {
  const auto gradient = [](const Values& x, const Values& slopes) {
    const auto count = static_cast<int64_t>(x.size());
    const Tensor leaf = tensor(x, {count}).requires_grad_();
    (logcumsumexp(leaf, 0) * tensor(slopes, {count})).sum().backward();
    return leaf.grad();
  };
  check_near(gradient({1, -2, 3}, {1, 2, 3}), {3.2606475, 0.112551, 2.626802}, 1e-5);
  check_near(gradient({-INFINITY, -INFINITY, 1, -INFINITY, 2}, {0, 0, 1, 1, 1}), {0, 0, 2.26894, 0, 0.73106}, 1e-5);
  // The second derivative of y[0]^2 / 2 + y[1] where y[0], and so the first gradient that comes, is 0.
  const Tensor x = zeros({2}).requires_grad_(), y = logcumsumexp(x, 0);
  const Tensor first = autograd::grad({y[0] * y[0] * 0.5 + y[1]}, {x}, {.create_graph = true})[0];
  CHECK(values(autograd::grad({first[0]}, {x})[0]) == Values{1.25F, -0.25F});
  // Of a number it is x, whose gradient depends on nothing.
  const Tensor number = zeros({}).requires_grad_();
  CHECK(!autograd::grad({logcumsumexp(number, 0)}, {number}, {.create_graph = true})[0].requires_grad());
}

TEST_CASE("sort and topk give back where the values were; integers have no gradient") {
  const Tensor x = tensor<float>({3, 1, 2}).requires_grad_();
  const SortResult found = sort(x, 0, true);
  CHECK(found.indices.to_vector<int64_t>() == std::vector<int64_t>{0, 2, 1});
  (found.values * tensor<float>({1, 2, 3})).sum().backward();
  CHECK(values(x.grad()) == Values{1, 3, 2});
  CHECK(argsort(x).to_vector<int64_t>() == std::vector<int64_t>{1, 2, 0});
  CHECK_FALSE(argsort(x).requires_grad());
  CHECK(topk(x, 2).indices.to_vector<int64_t>() == std::vector<int64_t>{0, 2});
  CHECK(cumsum(tensor<bool>({true, true}), 0).to_vector<int64_t>() == std::vector<int64_t>{1, 2});
  CHECK_THROWS_WITH_AS(topk(x, 4), doctest::Contains("indexing_test.cpp"), ValueError);
}

}  // namespace brigade::test::indexing_test
