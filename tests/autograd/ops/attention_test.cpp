// scaled_dot_product_attention as an operation: its composition as the reference, its errors, and what it saves.
#include "compositions.h"

#include <brigade/autograd/meta.h>

namespace brigade::test::attention_test {

TEST_CASE("attention and its gradients are those of matmul, softmax, dropout and matmul") {
  const Shape sizes{2, 3, 7, 4};
  for (const double p : {0.0, 0.25}) {
    std::vector<Tensor> gradients[2];
    Tensor results[2];
    for (const int composed : {0, 1}) {
      const Tensor q = normal_input(sizes, 1), k = normal_input(sizes, 2), v = normal_input(sizes, 3);
      const Tensor mask = normal_input({3, 1, 7}, 4);  // a learned bias for each head and key
      default_generator().manual_seed(5);
      results[composed] = composed ? matmul(dropout(softmax(matmul(q, k.transpose(-2, -1)) / 2.0 + mask, -1), p), v)
                                   : scaled_dot_product_attention(q, k, v, mask, p);
      sum(results[composed] * results[composed]).backward();
      gradients[composed] = {q.grad(), k.grad(), v.grad(), mask.grad()};
    }
    CHECK(largest_difference(results[0], results[1]) <= 1e-14);
    CHECK(gradients[0][3].sizes() == Shape{3, 1, 7});
    for (size_t i = 0; i < 4; ++i)
      CHECK(largest_difference(gradients[0][i], gradients[1][i]) <= 1e-13);
  }
}

TEST_CASE("heads of key and value that several heads of the query share are those repeated for each") {
  const Shape queries{2, 6, 5, 4};
  for (const auto& [key_heads, value_heads] : std::vector<std::pair<int64_t, int64_t>>{{2, 2}, {3, 1}, {6, 2}}) {
    CAPTURE(key_heads);
    std::vector<Tensor> found[2];
    for (const int repeated : {0, 1}) {
      const Tensor q = normal_input(queries, 1), k = normal_input({2, key_heads, 7, 4}, 2),
                   v = normal_input({2, value_heads, 7, 3}, 3);
      default_generator().manual_seed(5);
      const Tensor y = repeated ? scaled_dot_product_attention(q, repeat_interleave(k, 6 / key_heads, 1),
                                                               repeat_interleave(v, 6 / value_heads, 1), {}, 0.25, true)
                                : scaled_dot_product_attention(q, k, v, {}, 0.25, true, {}, true);
      sum(y * y).backward();
      found[repeated] = {y, q.grad(), k.grad(), v.grad()};
    }
    for (size_t i = 0; i < 4; ++i) {
      CHECK(found[0][i].sizes() == found[1][i].sizes());
      CHECK(largest_difference(found[0][i], found[1][i]) <= 1e-13);
    }
  }
  const Tensor q = ones({6, 5, 4});
  CHECK_THROWS_WITH_AS(scaled_dot_product_attention(q, ones({4, 7, 4}), ones({4, 7, 4}), {}, 0, false, {}, true),
                       doctest::Contains("must be a multiple of the key's"), ShapeError);
  CHECK_THROWS_WITH_AS(scaled_dot_product_attention(q, ones({2, 7, 4}), ones({2, 7, 4})),
                       doctest::Contains("with enable_gqa heads"), ShapeError);
}

TEST_CASE("attention keeps no matrix of scores for backward") {
  const Tensor q = normal_input({1, 512, 4}, 1), k = normal_input({1, 512, 4}, 2), v = normal_input({1, 512, 4}, 3);
  const Tensor out = scaled_dot_product_attention(q, k, v, {}, 0.1, true);
  // Saves the result and one number per row; the inputs are leaves.
  CHECK(autograd::grad_fn(out)->saved_bytes() == 512 * 5 * sizeof(double));
}

TEST_CASE("attention gives gradients to those who want one") {
  const Tensor q = normal_input({2, 3, 4}, 1), k = normal_input({2, 3, 4}, 2).detach(),
               v = normal_input({2, 3, 4}, 3).detach();
  sum(scaled_dot_product_attention(q, k, v)).backward();
  CHECK(q.grad().defined());
  CHECK_FALSE(k.grad().defined());
  CHECK_FALSE(v.grad().defined());
}

TEST_CASE("attention's errors name the caller's line") {
  const Tensor x = ones({2, 3, 4});
  CHECK_THROWS_WITH_AS(scaled_dot_product_attention(x, ones({2, 3, 5}), x),
                       doctest::Contains("ops/attention_test.cpp:"), ShapeError);
  CHECK_THROWS_WITH_AS(scaled_dot_product_attention(x, x, x, {}, 1.5),
                       doctest::Contains("dropout probability has to be between 0 and 1, but got 1.5"), ValueError);
  CHECK_THROWS_WITH_AS(scaled_dot_product_attention(x, x, x, ones({3, 3}), 0, true),
                       doctest::Contains("Explicit attn_mask should not be set when is_causal=True (called at"),
                       ValueError);
  CHECK_THROWS_AS(scaled_dot_product_attention(ones({}), ones({}), ones({}), {}, 0.5), ShapeError);
}

TEST_CASE("attention without a width, and without keys") {
  const Tensor v = normal_input({5, 4}, 1);
  // All scores are 0, so the result is the mean of the values.
  const Tensor out = scaled_dot_product_attention(zeros({3, 0}, kFloat64), zeros({5, 0}, kFloat64), v);
  CHECK(largest_difference(out, mean(v, {0}, true).expand({3, 4})) <= 1e-15);
  const Tensor none = zeros({0, 4});
  CHECK(scaled_dot_product_attention(ones({3, 4}), none, none).to_vector<float>() == std::vector<float>(12));
}

}  // namespace brigade::test::attention_test
