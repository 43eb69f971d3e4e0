// Values as in PyTorch, which results share memory, and rejected arguments.
#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

namespace brigade::test::rearrange_test {
namespace {

using Values = std::vector<float>;
Values values(const Tensor& x) { return x.to_vector<float>(); }
Tensor counted(const Shape& sizes) {
  return arange(0, static_cast<double>(sizes.numel()), 1, {kFloat32}).reshape(sizes);
}
bool shares_memory(const Tensor& a, const Tensor& b) { return a.storage().get() == b.storage().get(); }

}  // namespace

TEST_CASE("flip and roll copy in another order") {
  const Tensor x = counted({2, 3});
  CHECK(values(flip(x, {0, 1})) == Values{5, 4, 3, 2, 1, 0});
  CHECK(values(flip(x, {-1})) == Values{2, 1, 0, 5, 4, 3});
  CHECK(values(flip(x.t(), {0})) == Values{2, 5, 1, 4, 0, 3});
  CHECK(values(flip(x, {})) == values(x));
  CHECK_FALSE(shares_memory(flip(x, {}), x));
  CHECK(flip(zeros({0, 3}), {0, 1}).sizes() == Shape{0, 3});
  CHECK(values(flip(scalar_tensor(3.0), {0})) == Values{3});
  CHECK(values(roll(x, {4}, {1})) == Values{2, 0, 1, 5, 3, 4});
  CHECK(values(roll(x, {1, -1}, {0, 1})) == Values{4, 5, 3, 1, 2, 0});
  CHECK(values(roll(x, {2})) == Values{4, 5, 0, 1, 2, 3});
  CHECK(values(roll(x, {1, 1}, {1, 1})) == Values{1, 2, 0, 4, 5, 3});
  CHECK(values(roll(x.t(), {1}, {0})) == Values{2, 5, 0, 3, 1, 4});
  CHECK(roll(zeros({0, 3}), {2}, {0}).sizes() == Shape{0, 3});
  CHECK(roll(tensor<bool>({true, false, false}), {1}).to_vector<int64_t>() == std::vector<int64_t>{0, 1, 0});
  CHECK_THROWS_WITH_AS(flip(x, {0, -2}), doctest::Contains("appears twice"), ShapeError);
  CHECK_THROWS_WITH_AS(flip(x, {0, 0}), doctest::Contains("rearrange_test.cpp"), ShapeError);
  CHECK_THROWS_AS(flip(x, {2}), IndexError);
  CHECK_THROWS_WITH_AS(roll(x, {1, 2}, {0}), doctest::Contains("a shift for each dimension"), ValueError);
}

TEST_CASE("repeat, tile and repeat_interleave") {
  const Tensor x = counted({2, 3});
  CHECK(values(repeat(x, {1, 2})) == Values{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5});
  CHECK(values(repeat(x, {2, 1})) == Values{0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5});
  CHECK(repeat(x, {2, 1, 2}).sizes() == Shape{2, 2, 6});
  CHECK(values(repeat(x, {2, 1, 2}).select(0, 1)) == values(repeat(x, {1, 2})));
  CHECK(repeat(x, {2, 0}).sizes() == Shape{4, 0});
  CHECK(values(repeat(scalar_tensor(2.0), {3})) == Values{2, 2, 2});
  for (const Shape& counts : std::vector<Shape>{{1, 1}, {1, 1, 1}, {4, 1, 1}}) {
    const Tensor y = repeat(x, counts);
    CHECK_FALSE(shares_memory(y, x));
    CHECK(y.is_contiguous());
  }
  const Tensor many = counted({2, 1, 2, 1, 2, 1, 2, 2});  // no room for another dimension
  const Tensor twice = repeat(many, {2, 3, 2, 1, 1, 1, 1, 2});
  CHECK(twice.sizes() == Shape{4, 3, 4, 1, 2, 1, 2, 4});
  CHECK(values(twice.slice(0, 2, 4).slice(1, 2, 3).slice(2, 0, 2).slice(7, 2, 4)) == values(many));
  CHECK(values(tile(x, {2})) == values(repeat(x, {1, 2})));
  CHECK(values(repeat_interleave(x, 2, 1)) == Values{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5});
  CHECK(values(repeat_interleave(x, 2, 0)) == Values{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5});
  CHECK(values(repeat_interleave(x, 2)) == Values{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5});
  CHECK(repeat_interleave(x, 0, 1).sizes() == Shape{2, 0});
  CHECK_FALSE(shares_memory(repeat_interleave(x, 1, 1), x));
  CHECK(values(repeat_interleave(many, 2, 7)) == values(repeat_interleave(many, 2)));
  CHECK_THROWS_AS(repeat(x, {2}), ShapeError);
  CHECK_THROWS_AS(repeat(x, {2, -1}), ValueError);
  CHECK_THROWS_AS(repeat_interleave(x, -1, 0), ValueError);
}

TEST_CASE("movedim, swapaxes, unbind and diagonal are views") {
  const Tensor x = counted({2, 3, 4});
  const Tensor moved = movedim(x, {0, 1}, {-1, 0});
  CHECK(moved.sizes() == Shape{3, 4, 2});
  CHECK(values(moved.select(2, 1)) == values(x.select(0, 1)));
  CHECK(movedim(x, 2, 0).sizes() == Shape{4, 2, 3});
  CHECK(swapaxes(x, 0, -1).sizes() == Shape{4, 3, 2});
  CHECK(swapdims(x, 0, 1).sizes() == Shape{3, 2, 4});
  const auto parts = unbind(x, 1);
  REQUIRE(parts.size() == 3);
  CHECK(values(parts[1]) == Values{4, 5, 6, 7, 16, 17, 18, 19});
  CHECK(unbind(zeros({0, 2})).empty());
  CHECK(values(diagonal(x, 1, 2, 0)) == Values{12, 16, 20});
  CHECK(diagonal(x, 1, 2, 0).sizes() == Shape{3, 1});
  CHECK(values(diagonal(x, -1, 1, 2)) == Values{4, 9, 16, 21});
  CHECK(diagonal(x, 9, 1, 2).sizes() == Shape{2, 0});
  for (const Tensor& view : {moved, parts[2], diagonal(x)})
    CHECK(shares_memory(view, x));
  CHECK_THROWS_AS(movedim(x, {0, 0}, {1, 2}), ShapeError);
  CHECK_THROWS_AS(movedim(x, {0, 1}, {1}), ShapeError);
  CHECK_THROWS_AS(unbind(scalar_tensor(1.0)), ShapeError);
  CHECK_THROWS_WITH_AS(diagonal(x, 0, 1, -2), doctest::Contains("two different dimensions"), ShapeError);
}

TEST_CASE("the gradient of a part that nobody used is zeros") {
  const Tensor x = ones({3, 2}).requires_grad_();
  (unbind(x)[1] * 5.0).sum().backward();
  CHECK(values(x.grad()) == Values{0, 0, 5, 5, 0, 0});
  const Tensor y = ones({2, 3}).requires_grad_();
  diagonal(y, 9).sum().backward();
  CHECK(values(y.grad()) == Values(6, 0));
}

TEST_CASE("diag_embed puts vectors on diagonals") {
  const Tensor x = counted({2, 3});
  const Tensor y = diag_embed(x, -1, 0, 2);
  CHECK(y.sizes() == Shape{4, 2, 4});
  CHECK(values(y.select(1, 1)) == Values{0, 0, 0, 0, 3, 0, 0, 0, 0, 4, 0, 0, 0, 0, 5, 0});
  CHECK(values(diagonal(y, -1, 0, 2)) == values(x));
  CHECK(diag_embed(zeros({2, 0})).sizes() == Shape{2, 0, 0});
  CHECK_THROWS_AS(diag_embed(scalar_tensor(1.0)), ShapeError);
}

TEST_CASE("tril and triu of matrices, with the diagonal anywhere") {
  const Tensor x = counted({2, 3, 4});
  CHECK(values(tril(x, 1).select(0, 1)) == Values{12, 13, 0, 0, 16, 17, 18, 0, 20, 21, 22, 23});
  CHECK(values(triu(x, -1).select(0, 0)) == Values{0, 1, 2, 3, 4, 5, 6, 7, 0, 9, 10, 11});
  CHECK(values(triu(x, 2).select(0, 0)) == Values{0, 0, 2, 3, 0, 0, 0, 7, 0, 0, 0, 0});
  for (const int64_t diagonal : {-100, -3, -2, 0, 1, 3, 4, 100}) {
    CAPTURE(diagonal);
    CHECK(values(tril(x, diagonal) + triu(x, diagonal + 1)) == values(x));
  }
  CHECK(values(tril(x, -3)) == Values(24, 0));
  CHECK(values(triu(x, 4)) == Values(24, 0));
  CHECK(values(tril(counted({2, 2}).t())) == Values{0, 0, 1, 3});
  for (const DType dtype : {kFloat64, kFloat16, kBFloat16, kInt64, kInt32, kUInt8, kBool})
    CHECK(values(triu(ones({2, 3}, dtype), 1)) == Values{0, 1, 1, 0, 0, 1});
  CHECK(tril(zeros({0, 3})).sizes() == Shape{0, 3});
  CHECK(tril(zeros({3, 0})).sizes() == Shape{3, 0});
  CHECK_THROWS_WITH_AS(tril(zeros({3})), doctest::Contains("tril: expected a matrix"), ShapeError);
}

}  // namespace brigade::test::rearrange_test
