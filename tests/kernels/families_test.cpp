// Activations, softmax, convolution, pooling, batch norm, dropout, concatenation and optimizer steps against
// plain references.
#include <brigade/core/view.h>
#include <brigade/kernels/activation.h>
#include <brigade/kernels/batch_norm.h>
#include <brigade/kernels/concat.h>
#include <brigade/kernels/conv.h>
#include <brigade/kernels/cpu/detail/math.h>
#include <brigade/kernels/dropout.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/embedding.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/optimizer.h>
#include <brigade/kernels/pool.h>
#include <brigade/kernels/softmax.h>

#include <near.h>

#include <doctest/doctest.h>

#include <cmath>

using namespace brigade;
using namespace brigade::kernels;

namespace {

double at(const Tensor& x, int64_t i) { return brigade::detail::element_as_double(x, i); }

Tensor random(const Shape& sizes, uint64_t seed, DType dtype = kFloat32) {
  Generator generator(seed);
  return randn(sizes, dtype, &generator);
}

double largest_difference(const Tensor& a, const Tensor& b) {
  REQUIRE(a.sizes() == b.sizes());
  double worst = 0;
  for (int64_t i = 0; i < a.numel(); ++i)
    worst = test::worse(worst, std::abs(at(a, i) - at(b, i)));
  return worst;
}

}  // namespace

TEST_CASE("exp, tanh and sigmoid in float32 are within a few units in the last place") {
  double worst_exp = 0;
  double worst_tanh = 0;
  for (double x = -103; x < 88.7; x += 0.00371) {
    const auto v = static_cast<float>(x);
    const double exact = std::exp(static_cast<double>(v));
    worst_exp = test::worse(worst_exp, std::abs(cpu::exp(v) - exact) / std::max(exact * 0x1p-23, 0x1p-149));
    const double exact_tanh = std::tanh(static_cast<double>(v));
    worst_tanh =
        test::worse(worst_tanh, std::abs(cpu::tanh(v) - exact_tanh) / std::max(std::abs(exact_tanh) * 0x1p-23, 1e-45));
  }
  for (double x = -0.3; x < 0.3; x += 1e-5) {
    const double exact_tanh = std::tanh(static_cast<double>(static_cast<float>(x)));
    worst_tanh = test::worse(worst_tanh, std::abs(cpu::tanh(static_cast<float>(x)) - exact_tanh) /
                                             std::max(std::abs(exact_tanh) * 0x1p-23, 1e-45));
  }
  MESSAGE("worst error in ulp: exp " << worst_exp << ", tanh " << worst_tanh);
  CHECK(worst_exp <= 2);
  CHECK(worst_tanh <= 4);
  CHECK(cpu::exp(-1000.0F) == 0);
  CHECK(std::isinf(cpu::exp(1000.0F)));
  CHECK(std::isnan(cpu::exp(std::nanf(""))));
  CHECK(cpu::sigmoid(-200.0F) == 0);
}

TEST_CASE("activations in every floating dtype agree with float64") {
  const Tensor x = random({3, 67}, 1, kFloat64);
  for (const auto& [dtype, tolerance] :
       std::vector<std::pair<DType, double>>{{kFloat32, 1e-6}, {kFloat16, 4e-3}, {kBFloat16, 3e-2}}) {
    const Tensor low = cast(x, dtype);
    const Tensor same = cast(low, kFloat64);
    const Tensor g = cast(random({3, 67}, 2, kFloat64), dtype);
    const Tensor g64 = cast(g, kFloat64);
    const auto check = [&, tol = tolerance](const Tensor& a, const Tensor& b) {
      CHECK(a.dtype() == dtype);
      CHECK(largest_difference(cast(a, kFloat64), b) < tol * 4);
    };
    check(relu(low), relu(same));
    check(gelu(low, false), gelu(same, false));
    check(gelu(low, true), gelu(same, true));
    check(kernels::tanh(low), kernels::tanh(same));
    check(sigmoid(low), sigmoid(same));
    check(silu(low), silu(same));
    check(silu_backward(g, low), silu_backward(g64, same));
    check(leaky_relu(low, 0.1), leaky_relu(same, 0.1));
    check(gelu_backward(g, low, false), gelu_backward(g64, same, false));
    check(gelu_backward(g, low, true), gelu_backward(g64, same, true));
    check(softmax(low, 1), softmax(same, 1));
    check(log_softmax(low, 0), log_softmax(same, 0));
  }
  for (int64_t i = 0; i < x.numel(); i += 17)
    CHECK(at(silu(x), i) == doctest::Approx(at(x, i) / (1 + std::exp(-at(x, i)))));
  CHECK(relu(empty({0, 3})).numel() == 0);
  CHECK(std::isnan(at(relu(tensor<float>({std::nanf("")})), 0)));
}

TEST_CASE("softmax stays finite for large logits and sums to one along any dimension") {
  const Tensor x = tensor(std::vector<float>{1000, 1001, -1000, 0, 0, 0}, {2, 3});
  const Tensor p = softmax(x, 1);
  CHECK(at(p, 1) == doctest::Approx(1 / (1 + std::exp(-1.0))));
  CHECK(at(p, 2) == 0);
  const Tensor q = softmax(random({2, 5, 3}, 1), 1);
  for (int64_t n = 0; n < 2; ++n) {
    for (int64_t j = 0; j < 3; ++j) {
      double sum = 0;
      for (int64_t c = 0; c < 5; ++c)
        sum += at(q, (n * 5 + c) * 3 + j);
      CHECK(sum == doctest::Approx(1));
    }
  }
}

TEST_CASE("convolution by oneDNN and by im2col agree with plain loops") {
  struct Row {
    Shape x, w;
    Conv2dParams p;
  };
  for (const Row& row :
       std::vector<Row>{{{2, 3, 7, 6}, {4, 3, 3, 3}, {}},
                        {{1, 16, 9, 9}, {32, 16, 3, 3}, {.padding = {1, 1}}},
                        {{2, 4, 8, 5}, {6, 2, 3, 2}, {.stride = {2, 1}, .padding = {1, 0}, .groups = 2}},
                        {{1, 2, 9, 9}, {2, 2, 3, 3}, {.stride = {1, 2}, .padding = {2, 1}, .dilation = {2, 3}}},
                        {{3, 8, 4, 4}, {8, 1, 3, 3}, {.padding = {1, 1}, .groups = 8}},
                        {{2, 16, 24, 23}, {17, 16, 1, 1}, {}},
                        {{2, 6, 5, 4}, {4, 3, 1, 1}, {.groups = 2}},
                        {{1, 16, 23, 24}, {16, 16, 1, 1}, {.stride = {2, 1}, .padding = {1, 0}}},
                        {{1, 16, 23, 24}, {16, 16, 1, 1}, {.padding = {1, 2}}},
                        {{1, 1, 1, 1}, {1, 1, 1, 1}, {}}}) {
    const Tensor x = random(row.x, 1, kFloat64);
    const Tensor w = random(row.w, 2, kFloat64);
    const Tensor bias = random({row.w[0]}, 3, kFloat64);
    const Tensor y = conv2d(x, w, bias, row.p);
    CAPTURE(to_string(row.w));
    // Plain loops.
    const int64_t in_per_group = row.w[1];
    const int64_t out_per_group = row.w[0] / row.p.groups;
    double worst = 0;
    int64_t i = 0;
    for (int64_t n = 0; n < y.size(0); ++n) {
      for (int64_t o = 0; o < y.size(1); ++o) {
        for (int64_t h = 0; h < y.size(2); ++h) {
          for (int64_t v = 0; v < y.size(3); ++v, ++i) {
            double sum = at(bias, o);
            for (int64_t c = 0; c < in_per_group; ++c) {
              for (int64_t a = 0; a < row.w[2]; ++a) {
                for (int64_t b = 0; b < row.w[3]; ++b) {
                  const int64_t r = h * row.p.stride[0] - row.p.padding[0] + a * row.p.dilation[0];
                  const int64_t s = v * row.p.stride[1] - row.p.padding[1] + b * row.p.dilation[1];
                  if (r < 0 || s < 0 || r >= row.x[2] || s >= row.x[3]) continue;
                  const int64_t channel = o / out_per_group * in_per_group + c;
                  sum += at(x, ((n * row.x[1] + channel) * row.x[2] + r) * row.x[3] + s) *
                         at(w, ((o * in_per_group + c) * row.w[2] + a) * row.w[3] + b);
                }
              }
            }
            worst = test::worse(worst, std::abs(sum - at(y, i)));
          }
        }
      }
    }
    CHECK(worst < 1e-12);
    // float32, which may take another road, and its two backward passes.
    const Tensor x32 = cast(x, kFloat32);
    const Tensor w32 = cast(w, kFloat32);
    CHECK(largest_difference(conv2d(x32, w32, cast(bias, kFloat32), row.p), y) < 1e-4);
    const Tensor g = random(y.sizes(), 4, kFloat64);
    const Tensor g32 = cast(g, kFloat32);
    CHECK(largest_difference(conv2d_backward_input(g32, w32, row.x, row.p), conv2d_backward_input(g, w, row.x, row.p)) <
          1e-4);
    const Tensor exact = conv2d_backward_weight(g, x, row.w, row.p, {}, false);
    CHECK(largest_difference(conv2d_backward_weight(g32, x32, row.w, row.p, {}, false), exact) < 1e-3);
    const Tensor out = ones(row.w);
    conv2d_backward_weight(g32, x32, row.w, row.p, out, true);
    CHECK(largest_difference(out, binary_scalar(exact, 1, BinaryOp::Add, false)) < 1e-3);
  }
  CHECK_THROWS_AS(conv2d(zeros({1, 3, 4, 4}), zeros({2, 2, 3, 3}), {}, {}), ShapeError);
  CHECK_THROWS_AS(conv2d(zeros({1, 1, 2, 2}), zeros({1, 1, 3, 3}), {}, {}), ShapeError);
  CHECK(conv2d(zeros({0, 1, 4, 4}), zeros({2, 1, 3, 3}), {}, {}).sizes() == Shape{0, 2, 2, 2});
}

TEST_CASE("pooling: windows, padding, ceil mode, indices") {
  const Tensor x = tensor(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 1, 3, 3});
  const MaxPool pooled = max_pool2d(x, {});
  CHECK(pooled.values.to_vector<float>() == std::vector<float>{5});
  CHECK(pooled.indices.to_vector<int64_t>() == std::vector<int64_t>{4});
  CHECK(max_pool2d(x, {.ceil_mode = true}).values.to_vector<float>() == std::vector<float>{5, 6, 8, 9});
  CHECK(avg_pool2d(x, {{2, 2}, {1, 1}}).to_vector<float>() == std::vector<float>{3, 4, 6, 7});
  CHECK(avg_pool2d(x, {{2, 2}, {2, 2}, {1, 1}}).to_vector<float>() == std::vector<float>{0.25, 1.25, 2.75, 7});
  CHECK(avg_pool2d(x, {{2, 2}, {2, 2}, {1, 1}, false, false}).to_vector<float>() == std::vector<float>{1, 2.5, 5.5, 7});
  CHECK(max_pool2d_backward(tensor(std::vector<float>{3}, {1, 1, 1, 1}), pooled.indices, {1, 1, 3, 3}, {})
            .to_vector<float>() == std::vector<float>{0, 0, 0, 0, 3, 0, 0, 0, 0});
  CHECK_THROWS_AS(max_pool2d(zeros({1, 1, 1, 1}), {}), ShapeError);
  CHECK_THROWS_AS(max_pool2d(x, {{2, 2}, {2, 2}, {2, 2}}), ValueError);
}

TEST_CASE("batch norm: statistics, running averages, evaluation") {
  const Tensor x = random({4, 2, 3}, 1, kFloat64);
  const Tensor running_mean = zeros({2}, kFloat64);
  const Tensor running_var = ones({2}, kFloat64);
  const BatchNorm result = batch_norm(x, {}, {}, running_mean, running_var, true, 0.1, 0);
  for (int64_t c = 0; c < 2; ++c) {
    double mean = 0;
    double square = 0;
    double normed = 0;
    for (int64_t n = 0; n < 4; ++n) {
      for (int64_t i = 0; i < 3; ++i) {
        mean += at(x, (n * 2 + c) * 3 + i) / 12;
        normed += at(result.y, (n * 2 + c) * 3 + i);
      }
    }
    for (int64_t n = 0; n < 4; ++n) {
      for (int64_t i = 0; i < 3; ++i)
        square += std::pow(at(x, (n * 2 + c) * 3 + i) - mean, 2);
    }
    CHECK(std::abs(normed) < 1e-12);
    CHECK(at(running_mean, c) == doctest::Approx(0.1 * mean));
    CHECK(at(running_var, c) == doctest::Approx(0.9 + 0.1 * square / 11));
    CHECK(at(result.invstd, c) == doctest::Approx(1 / std::sqrt(square / 12)));
  }
  const Tensor y = batch_norm(x, full({2}, 2, kFloat64), full({2}, 1, kFloat64), full({2}, 0.5, kFloat64),
                              full({2}, 4, kFloat64), false, 0.1, 0)
                       .y;
  CHECK(at(y, 0) == doctest::Approx((at(x, 0) - 0.5) / 2 * 2 + 1));
  CHECK_THROWS_WITH_AS(batch_norm(zeros({1, 2}), {}, {}, {}, {}, true, 0.1, 0),
                       doctest::Contains("Expected more than 1 value per channel when training"), ValueError);
}

TEST_CASE("batch norm in parts is batch norm, bit for bit; an empty batch has moments and sums of zero") {
  for (const DType dtype : {kFloat64, kFloat32, kBFloat16}) {
    CAPTURE(name(dtype));
    const Tensor x = cast(random({4, 3, 5}, 1, kFloat64), dtype);
    const Tensor grad = cast(random({4, 3, 5}, 2, kFloat64), dtype);
    const Tensor weight = random({3}, 3, kFloat32);
    const Tensor bias = random({3}, 4, kFloat32);
    const Tensor mean = zeros({3}), mean_in_parts = zeros({3});
    const Tensor variance = ones({3}), variance_in_parts = ones({3});
    const BatchNorm whole = batch_norm(x, weight, bias, mean, variance, true, 0.1, 1e-5);
    const BatchNorm parts =
        batch_norm_apply(x, weight, bias, mean_in_parts, variance_in_parts, batch_norm_moments(x), 20, 0.1, 1e-5);
    CHECK(parts.y.to_vector<double>() == whole.y.to_vector<double>());
    CHECK(mean_in_parts.to_vector<double>() == mean.to_vector<double>());
    CHECK(variance_in_parts.to_vector<double>() == variance.to_vector<double>());
    const BatchNormGrads grads = batch_norm_backward(grad, x, weight, whole.mean, whole.invstd, true);
    const Tensor sums = batch_norm_gradient_sums(grad, x, parts.mean, parts.invstd);
    CHECK(batch_norm_input_gradient(grad, x, weight, parts.mean, parts.invstd, sums, 20).to_vector<double>() ==
          grads.x.to_vector<double>());
    for (int64_t c = 0; c < 3; ++c) {
      CHECK(static_cast<float>(at(sums, c)) == static_cast<float>(at(grads.bias, c)));
      CHECK(static_cast<float>(at(sums, 3 + c)) == static_cast<float>(at(grads.weight, c)));
    }
  }
  const Tensor none = zeros({0, 3});
  CHECK(batch_norm_moments(none).to_vector<double>() == std::vector<double>(6, 0));
  CHECK(batch_norm_gradient_sums(none, none, zeros({3}), ones({3})).to_vector<double>() == std::vector<double>(6, 0));
  CHECK(batch_norm_apply(none, {}, {}, {}, {}, ones({2, 3}, kFloat64), 5, 0.1, 1e-5).y.sizes() == Shape{0, 3});
  CHECK_THROWS_AS(batch_norm_apply(none, {}, {}, {}, {}, ones({2, 3}), 5, 0.1, 1e-5), ShapeError);
}

TEST_CASE("dropout keeps by the documented stream and repeats from its position") {
  const Tensor x = ones({10'003});
  const PhiloxState state{5, 7};
  const Tensor y = dropout(x, 0.25, state);
  int64_t kept = 0;
  for (int64_t i = 0; i < x.numel(); ++i) {
    const bool expected = uniform_from_word(state.word(static_cast<uint64_t>(i))) >= 0.25F;
    REQUIRE(at(y, i) == doctest::Approx(expected ? 1 / 0.75 : 0));
    kept += expected;
  }
  CHECK(static_cast<double>(kept) / 10'003 == doctest::Approx(0.75).epsilon(0.02));
  CHECK(largest_difference(dropout(x, 0.25, state), y) == 0);
  CHECK(at(dropout(x, 1, state), 3) == 0);
}

TEST_CASE("cat and row selection") {
  const std::vector<Tensor> parts{tensor(std::vector<float>{1, 2}, {2, 1}),
                                  view::transpose(tensor(std::vector<float>{3, 4, 5, 6}, {2, 2}), 0, 1)};
  CHECK(cat(std::span<const Tensor>(parts), 1).to_vector<float>() == std::vector<float>{1, 3, 5, 2, 4, 6});
  const std::vector<Tensor> bad{zeros({2, 1}), zeros({3, 1})};
  CHECK_THROWS_WITH_AS(cat(std::span<const Tensor>(bad), 1), doctest::Contains("tensor 1 has shape [3, 1]"),
                       ShapeError);
  const Tensor x = tensor(std::vector<float>{1, 2, 3, 4, 5, 6}, {3, 2});
  CHECK(index_rows(x, tensor<int64_t>({2, 0, 2})).to_vector<float>() == std::vector<float>{5, 6, 1, 2, 5, 6});
  CHECK(index_rows_backward(ones({3, 2}), tensor<int64_t>({2, 0, 2}), {3, 2}).to_vector<float>() ==
        std::vector<float>{1, 1, 0, 0, 2, 2});
  CHECK_THROWS_WITH_AS(index_rows(x, tensor<int64_t>({0, 3})), "index_select: index 3 at position 1 is not a row 0..2",
                       IndexError);
}

TEST_CASE("embedding: rows by index; gradients of a row add up in order, whatever the dtype, on top of what is there") {
  const Tensor indices = tensor(std::vector<int64_t>{2, 0, 2, 4, 2, 0}, {2, 3});
  for (const DType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16}) {
    CAPTURE(name(dtype));
    const Tensor weight = cast(random({5, 7}, 1, kFloat64), dtype);
    const Tensor y = embedding(weight, indices);
    CHECK(y.sizes() == Shape{2, 3, 7});
    CHECK(y.dtype() == dtype);
    const Tensor grad = cast(random({2, 3, 7}, 2, kFloat64), dtype);
    const Tensor out = cast(random({5, 7}, 3, kFloat64), dtype);
    const Tensor before = clone(out);
    const Tensor fresh = embedding_backward(grad, indices, {.rows = 5, .padding_idx = 0});
    embedding_backward(grad, indices, {.rows = 5, .padding_idx = 0, .out = out, .accumulate = true});
    std::vector<double> expected(35, 0.0);
    for (int64_t i = 0; i < 6; ++i) {
      const int64_t row = indices.to_vector<int64_t>()[static_cast<size_t>(i)];
      for (int64_t k = 0; k < 7; ++k) {
        CHECK(at(y, i * 7 + k) == at(weight, row * 7 + k));
        if (row != 0) expected[static_cast<size_t>(row * 7 + k)] += at(grad, i * 7 + k);
      }
    }
    const double bound = dtype == kFloat64 ? 1e-15 : dtype == kFloat32 ? 1e-6 : dtype == kFloat16 ? 2e-3 : 2e-2;
    for (int64_t i = 0; i < 35; ++i) {
      CHECK(std::abs(at(fresh, i) - expected[static_cast<size_t>(i)]) <= bound * 4);
      CHECK(std::abs(at(out, i) - (at(before, i) + expected[static_cast<size_t>(i)])) <= bound * 4);
      if (i < 14 || i / 7 == 3) CHECK(at(out, i) == at(before, i));  // padding, and rows that nobody asked for
    }
  }
  // Large enough for several threads, and the same bits as in one pass over the positions.
  const int64_t count = 5000;
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < count; ++i)
    chosen.push_back((i * 7919) % 301);
  const Tensor grad = random({count, 40}, 4, kFloat32);
  const Tensor found = embedding_backward(grad, tensor(chosen, {count}), {.rows = 301});
  std::vector<float> sums(301 * 40, 0.0F);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t k = 0; k < 40; ++k)
      sums[static_cast<size_t>(chosen[static_cast<size_t>(i)] * 40 + k)] += grad.data_ptr<float>()[i * 40 + k];
  }
  CHECK(found.to_vector<float>() == sums);
  CHECK(embedding(random({3, 2}, 1, kFloat32), zeros({0, 4}, kInt64)).sizes() == Shape{0, 4, 2});
  CHECK(embedding_backward(zeros({0, 2}), zeros({0}, kInt64), {.rows = 3}).to_vector<float>() ==
        std::vector<float>(6, 0.0F));
  for (const int64_t wrong : {int64_t{5}, int64_t{-1}}) {
    CHECK_THROWS_WITH_AS(embedding(zeros({5, 2}), tensor(std::vector<int64_t>{0, wrong}, {2})),
                         doctest::Contains((std::to_string(wrong) + " at position 1 is not a row 0..4").c_str()),
                         IndexError);
  }
  CHECK_THROWS_AS(embedding(zeros({5, 2}), zeros({2})), DTypeError);
  CHECK_THROWS_AS(embedding(zeros({5}), zeros({2}, kInt64)), ShapeError);
}
