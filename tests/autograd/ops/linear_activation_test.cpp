// linear_relu and linear_gelu as operations: their compositions as the reference, and what they save.
#include "compositions.h"

#include <brigade/autograd/meta.h>

namespace brigade::test::linear_activation_test {
namespace {

Tensor fused(bool by_relu, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return by_relu ? linear_relu(x, weight, bias) : linear_gelu(x, weight, bias);
}
Tensor composed(bool by_relu, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Tensor pre = linear(x, weight, bias);
  return by_relu ? relu(pre) : gelu(pre, GeluApproximation::Tanh);
}

}  // namespace

TEST_CASE("linear_relu and linear_gelu and their gradients are those of linear and the activation") {
  for (const bool by_relu : {true, false}) {
    for (const bool with_bias : {true, false}) {
      std::vector<Tensor> gradients[2];
      Tensor results[2];
      for (const int way : {0, 1}) {
        const Tensor x = normal_input({2, 5, 7}, 1), weight = normal_input({6, 7}, 2);
        const Tensor bias = with_bias ? normal_input({6}, 3) : Tensor();
        results[way] = (way == 0 ? fused : composed)(by_relu, x, weight, bias);
        sum(results[way] * results[way]).backward();
        gradients[way] = {x.grad(), weight.grad()};
        if (with_bias) gradients[way].push_back(bias.grad());
      }
      CHECK(largest_difference(results[0], results[1]) == 0);
      for (size_t i = 0; i < gradients[0].size(); ++i)
        CHECK(largest_difference(gradients[0][i], gradients[1][i]) == 0);
    }
  }
}

TEST_CASE("a fused linear layer keeps its result or what GELU was taken of, when a gradient is wanted") {
  const Tensor x = normal_input({10, 4}, 1), weight = normal_input({3, 4}, 2);
  const size_t one_result = 10 * 3 * sizeof(double);
  CHECK(autograd::grad_fn(linear_relu(x, weight))->saved_bytes() == one_result);
  CHECK(autograd::grad_fn(linear_gelu(x, weight))->saved_bytes() == one_result);
  CHECK_FALSE(linear_gelu(x.detach(), weight.detach()).requires_grad());
  const NoGradGuard guard;
  CHECK_FALSE(linear_gelu(x, weight).requires_grad());
}

TEST_CASE("a fused linear layer gives gradients to those who want one") {
  for (const bool by_relu : {true, false}) {
    const Tensor x = normal_input({4, 3}, 1).detach(), weight = normal_input({5, 3}, 2).detach(),
                 bias = normal_input({5}, 3);
    sum(fused(by_relu, x, weight, bias)).backward();
    CHECK(bias.grad().defined());
    CHECK_FALSE(weight.grad().defined());
    const Tensor wanting = normal_input({4, 3}, 1);
    sum(fused(by_relu, wanting, weight, {})).backward();
    CHECK(wanting.grad().defined());
  }
}

TEST_CASE("the result of linear_relu may not be written before backward, that of linear_gelu may") {
  const Tensor x = normal_input({4, 3}, 1), weight = normal_input({5, 3}, 2);
  const Tensor y = linear_relu(x, weight);
  y.mul_(2.0);
  CHECK_THROWS_WITH_AS(sum(y).backward(), doctest::Contains("modified by an inplace operation"), AutogradError);
  const Tensor z = linear_gelu(x, weight);
  z.mul_(2.0);
  sum(z).backward();
  const Tensor other = normal_input({4, 3}, 1);
  sum(gelu(linear(other, weight.detach()), GeluApproximation::Tanh) * 2.0).backward();
  CHECK(largest_difference(x.grad(), other.grad()) <= 1e-14);
}

TEST_CASE("an error of a fused linear layer names the caller's line") {
  CHECK_THROWS_WITH_AS(linear_gelu(normal_input({2, 3}, 1), normal_input({4, 5}, 2)),
                       doctest::Contains("linear_activation_test.cpp"), ShapeError);
  CHECK_THROWS_WITH_AS(linear_relu(normal_input({2, 3}, 1), normal_input({4, 5}, 2)),
                       doctest::Contains("mat1 and mat2 shapes cannot be multiplied"), ShapeError);
}

}  // namespace brigade::test::linear_activation_test
