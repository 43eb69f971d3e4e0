// Operations reject invalid arguments with an error that gives what was expected and what was passed; and some
// shorthands.
#include "cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

namespace brigade::test::operation_refusals_test {
using doctest::Contains;

namespace {

std::vector<double> values(const Tensor& x) { return x.to_vector<double>(); }
Tensor counted(const Shape& sizes) {
  return arange(0, static_cast<double>(sizes.numel()), 1, {kFloat64}).reshape(sizes);
}

}  // namespace

TEST_CASE("joining and dividing") {
  const Tensor x = counted({2, 3});
  CHECK_THROWS_WITH_AS(cat({}), Contains("cat: expected a non-empty list of tensors"), ValueError);
  CHECK_THROWS_WITH_AS(stack({}), Contains("stack: expected a non-empty list of tensors"), ValueError);
  CHECK_THROWS_WITH_AS(stack({x, counted({3, 2})}), Contains("expected tensors of one shape, got [2, 3] and [3, 2]"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(split(x, 0), Contains("split: size must be at least 1, got 0"), ValueError);
  CHECK_THROWS_WITH_AS(chunk(x, 0), Contains("chunk: count must be at least 1, got 0"), ValueError);
}

TEST_CASE("shapes") {
  const Tensor x = counted({2, 3});
  CHECK_THROWS_WITH_AS(x.t().view({6}), Contains("view size is not compatible with input tensor's size and stride"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(x.flatten(1, 0), Contains("start_dim must not come after end_dim"), ShapeError);
  CHECK_THROWS_WITH_AS(counted({1, 2, 3}).t(),
                       Contains("t() expects a tensor with <= 2 dimensions, but self is 3D: [1, 2, 3]"), ShapeError);
  CHECK_THROWS_WITH_AS(x.narrow(1, 2, 2), Contains("start 2 and length 2 exceed dimension 1 of size 3"), IndexError);
  CHECK_THROWS_WITH_AS(x.item(), Contains("item(): expected a tensor with one element, got float64 [2, 3]"),
                       ShapeError);
  CHECK(values(reshape(x, {3, 2})) == values(x));
  CHECK(values(permute(x, {1, 0})) == std::vector<double>{0, 3, 1, 4, 2, 5});
  CHECK(values(transpose(x, 0, 1)) == values(permute(x, {1, 0})));
  CHECK(flatten(counted({2, 2, 3}), 1, 2).sizes() == Shape{2, 6});
  CHECK(values(expand(counted({1, 2}), {2, 2})) == std::vector<double>{0, 1, 0, 1});
  CHECK(values(x.sum({0})) == std::vector<double>{3, 5, 7});
  const Tensor same = pad(x, {0, 0});
  CHECK(values(same) == values(x));
  CHECK(same.raw_data() != x.raw_data());
}

TEST_CASE("choices") {
  const Tensor x = counted({3}), y = tensor<double>({0, 5, 1});
  CHECK(values(ne(x, y).to(kFloat64)) == std::vector<double>{0, 1, 1});
  CHECK(values(ge(x, y).to(kFloat64)) == std::vector<double>{1, 0, 1});
  CHECK(values(where(gt(x, 0.5), 7.0, -7.0).to(kFloat64)) == std::vector<double>{-7, 7, 7});
  CHECK(values(clamp_min(x, y)) == std::vector<double>{0, 5, 2});
  CHECK(nonzero(x).to_vector<int64_t>() == std::vector<int64_t>{1, 2});
  CHECK_THROWS_WITH_AS(dropout(x, 1.5), Contains("dropout probability has to be between 0 and 1, but got 1.5"),
                       ValueError);
}

TEST_CASE("classes and weights") {
  const Tensor logits = counted({2, 3}), labels = tensor<int64_t>({0, 2});
  CHECK_THROWS_WITH_AS(cross_entropy(logits, counted({2})), Contains("expected probabilities like the logits"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(cross_entropy(logits, softmax(logits, 1), {.ignore_index = 1}),
                       Contains("ignore_index is not supported for a target of probabilities, got 1"), ValueError);
  CHECK_THROWS_WITH_AS(cross_entropy(logits, labels, {.label_smoothing = 1.5}),
                       Contains("label_smoothing must be between 0.0 and 1.0, got 1.5"), ValueError);
  CHECK_THROWS_WITH_AS(cross_entropy(logits, labels, {.weight = ones({2}, {kFloat64})}),
                       Contains("weight must have one element for each of the 3 classes, got float64 [2]"), ShapeError);
  CHECK_THROWS_WITH_AS(embedding(labels, counted({4, 2}), 4),
                       Contains("expected a padding_idx of -1 (none) or 0..3, got 4"), ValueError);
  CHECK_THROWS_WITH_AS(
      binary_cross_entropy(sigmoid(logits), zeros({2, 3}, {kFloat64}), {.weight = ones({4, 2, 3}, {kFloat64})}),
      Contains("expected a weight that broadcasts to [2, 3], got float64 [4, 2, 3]"), ShapeError);
  CHECK_THROWS_WITH_AS(triplet_margin_loss(logits, logits, counted({3})),
                       Contains("with the same number of dimensions, at least 1, got"), ShapeError);
}

TEST_CASE("products, windows and statistics") {
  const Tensor x = counted({2, 3});
  CHECK_THROWS_WITH_AS(mm(x, counted({3})), Contains("expected tensors with 2 dimensions, got [3]"), ShapeError);
  CHECK_THROWS_WITH_AS(bmm(counted({2, 2, 2}), counted({3, 2, 2})), Contains("bmm: expected equal batches"),
                       ShapeError);
  const Tensor whole = counted({1, 1, 4}).to(kInt64);
  CHECK_THROWS_WITH_AS(max_pool1d(whole, 2), Contains("max_pool1d: expected a floating dtype, got int64"), DTypeError);
  CHECK_THROWS_WITH_AS(avg_pool1d(whole, 2), Contains("avg_pool1d: expected a floating dtype, got int64"), DTypeError);
  CHECK_THROWS_WITH_AS(adaptive_avg_pool1d(whole, 2),
                       Contains("adaptive_avg_pool1d: expected a floating dtype, got int64"), DTypeError);
  CHECK_THROWS_WITH_AS(max_pool1d(counted({4}), 2), Contains("max_pool1d: expected [N, C, L] or [C, L], got [4]"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(adaptive_avg_pool2d(x, 2), Contains("expected [N, C, H, W] or [C, H, W], got [2, 3]"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(adaptive_avg_pool2d(counted({1, 4, 4}), 0), Contains("output_size must be at least 1, got 0"),
                       ValueError);
  CHECK_THROWS_WITH_AS(instance_norm(counted({1, 2, 4}), {}, {}, {}, {}, false),
                       Contains("expected running_mean and running_var without use_input_stats"), ValueError);
  CHECK_THROWS_WITH_AS(instance_norm(counted({1, 2, 4}), ones({3}, {kFloat64}), ones({3}, {kFloat64})),
                       Contains("expected running statistics [2], got float64 [3]"), ShapeError);
}

TEST_CASE("an undefined tensor in place of any input of any operation is refused, unless the input is optional") {
  int refused = 0;
  for (const test::Case& each : test::cases()) {
    for (size_t i = 0; i < each.inputs.size(); ++i) {
      CAPTURE(each.name);
      CAPTURE(i);
      std::vector<Tensor> inputs = each.inputs;
      inputs[i] = Tensor();
      try {
        const Tensor y = each.function(inputs);
        CHECK(y.defined());
        if (y.requires_grad()) sum(y).backward();
      } catch (const Error& error) {
        ++refused;
        CHECK(std::string(error.what()).size() > 20);
      }
    }
  }
  CHECK(refused > 300);
}

TEST_CASE("what is asked of an undefined tensor") {
  const Tensor x = ones({2}).requires_grad_();
  const char* const words = "expected a tensor, got an undefined one";
  CHECK_THROWS_WITH_AS(x.grad().to_vector<float>(), Contains(words), ValueError);
  CHECK_THROWS_WITH_AS(x.grad() * 2.0, Contains(words), ValueError);
  CHECK_THROWS_WITH_AS(2.0 - x.grad(), Contains(words), ValueError);
  CHECK_THROWS_WITH_AS(x + x.grad(), Contains(words), ValueError);
  CHECK_THROWS_WITH_AS(x.detach().copy_(x.grad()), Contains(words), ValueError);
  CHECK_THROWS_WITH_AS(x.grad().item(), Contains("undefined"), Error);
  CHECK_THROWS_WITH_AS(x.grad().zero_(), Contains(words), ValueError);
  CHECK_THROWS_WITH_AS(x.grad().sizes(), Contains(words), ValueError);
  CHECK_THROWS_AS(x.grad().backward(), AutogradError);
  CHECK_FALSE(x.grad().requires_grad());
  CHECK(x.grad().use_count() == 0);
}

}  // namespace brigade::test::operation_refusals_test
