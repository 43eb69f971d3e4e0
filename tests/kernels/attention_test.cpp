// Attention on the CPU against a plain loop in double: softmax(q k^T * scale + mask) v, and its derivative by the chain
// rule written out.
#include <brigade/core/view.h>
#include <brigade/kernels/activation.h>
#include <brigade/kernels/attention.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>

#include <near.h>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace brigade::test::attention_test {
using namespace brigade::kernels;

namespace {

Tensor random(const Shape& sizes, DType dtype, uint64_t seed) {
  RandomGenerator generator(seed);
  return cast(randn(sizes, kFloat64, &generator), dtype);
}

// Largest difference relative to the larger of 1 and the reference.
double difference(const Tensor& found, const std::vector<double>& expected) {
  const auto values = found.to_vector<double>();
  REQUIRE(values.size() == expected.size());
  double worst = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double distance = std::abs(values[i] - expected[i]) / std::max(1.0, std::abs(expected[i]));
    worst = distance <= worst ? worst : distance;  // propagates a NaN
  }
  return worst;
}

struct Reference {
  std::vector<double> out, logsumexp, q, k, v;
};

// `keep`: the factor of each probability (dropout); undefined for all ones.
Reference reference(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v,
                    const AttentionOptions& options, const Tensor& keep = {}) {
  const int64_t queries = q.size(-2), keys = k.size(-2), width = q.size(-1), value_width = v.size(-1);
  int64_t batches = 1;
  Shape sizes = q.sizes();
  sizes[q.dim() - 1] = keys;
  for (int d = 0; d < q.dim() - 2; ++d)
    batches *= q.sizes()[d];
  const auto g = grad.to_vector<double>(), qs = q.to_vector<double>(), ks = k.to_vector<double>(),
             vs = v.to_vector<double>();
  const auto factors = keep.defined() ? keep.to_vector<double>() : std::vector<double>();
  const auto mask =
      options.mask.defined() ? view::expand(options.mask, sizes).to_vector<double>() : std::vector<double>();
  Reference result{std::vector<double>(g.size()),
                   {},
                   std::vector<double>(qs.size()),
                   std::vector<double>(ks.size()),
                   std::vector<double>(vs.size())};
  for (int64_t row = 0; row < batches * queries; ++row) {
    const int64_t n = row / queries, i = row % queries;
    std::vector<double> p(static_cast<size_t>(keys)), slope(p.size());
    double largest = -INFINITY, sum = 0, delta = 0;
    for (int64_t j = 0; j < keys; ++j) {
      double score = 0;
      for (int64_t c = 0; c < width; ++c)
        score += qs[row * width + c] * ks[(n * keys + j) * width + c];
      score *= options.scale;
      if (!mask.empty() && options.mask.dtype() == kBool && mask[row * keys + j] == 0) score = -INFINITY;
      if (!mask.empty() && options.mask.dtype() != kBool) score += mask[row * keys + j];
      if (options.is_causal && j > i) score = -INFINITY;
      p[j] = score;
      largest = std::max(largest, score);
    }
    for (double& x : p) {
      x = largest == -INFINITY ? 0 : std::exp(x - largest);
      sum += x;
    }
    result.logsumexp.push_back(largest + std::log(sum));
    for (int64_t j = 0; j < keys; ++j) {
      p[j] = sum == 0 ? 0 : p[j] / sum;
      const double factor = factors.empty() ? 1 : factors[row * keys + j];
      for (int64_t c = 0; c < value_width; ++c) {
        const double there = g[row * value_width + c];
        result.out[row * value_width + c] += p[j] * factor * vs[(n * keys + j) * value_width + c];
        result.v[(n * keys + j) * value_width + c] += p[j] * factor * there;
        slope[j] += factor * there * vs[(n * keys + j) * value_width + c];
      }
      delta += p[j] * slope[j];
    }
    for (int64_t j = 0; j < keys; ++j) {
      const double d = p[j] * (slope[j] - delta) * options.scale;
      for (int64_t c = 0; c < width; ++c) {
        result.q[row * width + c] += d * ks[(n * keys + j) * width + c];
        result.k[(n * keys + j) * width + c] += d * qs[row * width + c];
      }
    }
  }
  return result;
}

void check(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options,
           double tolerance, const Tensor& keep = {}) {
  const Reference expected = reference(grad, q, k, v, options, keep);
  const Attention result = attention(q, k, v, options);
  CHECK(result.out.sizes() == grad.sizes());
  CHECK(result.out.dtype() == q.dtype());
  CHECK(result.logsumexp.dtype() == (q.dtype() == kFloat64 ? kFloat64 : kFloat32));
  CHECK(difference(result.out, expected.out) <= tolerance);
  double worst = 0;
  const auto found = result.logsumexp.to_vector<double>();
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i] != expected.logsumexp[i])
      worst = test::worse(worst, std::abs(found[i] - expected.logsumexp[i]) / std::max(1.0, std::abs(found[i])));
  }
  CHECK(worst <= (q.dtype() == kFloat64 ? 1e-13 : 1e-5));
  const AttentionGradients gradients = attention_backward(grad, q, k, v, result, options, {});
  CHECK(gradients.q.dtype() == q.dtype());
  CHECK(difference(gradients.q, expected.q) <= 2 * tolerance);
  CHECK(difference(gradients.k, expected.k) <= 2 * tolerance);
  CHECK(difference(gradients.v, expected.v) <= 2 * tolerance);
}

double tolerance_of(DType dtype) {
  return dtype == kFloat64 ? 1e-13 : dtype == kFloat32 ? 1e-5 : dtype == kFloat16 ? 3e-3 : 3e-2;
}

}  // namespace

TEST_CASE("attention: dtypes and sizes around a tile, causal or not") {
  struct Sizes {
    int64_t queries, keys, width, value_width;
  };
  for (const DType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16}) {
    for (const Sizes s : {Sizes{1, 1, 1, 1}, Sizes{3, 7, 20, 20}, Sizes{65, 64, 64, 32}, Sizes{64, 300, 16, 80},
                          Sizes{130, 257, 8, 8}, Sizes{300, 5, 4, 4}}) {
      for (const bool is_causal : {false, true}) {
        CAPTURE(name(dtype));
        CAPTURE(s.queries);
        CAPTURE(is_causal);
        const Tensor q = random({2, s.queries, s.width}, dtype, 1);
        const Tensor k = random({2, s.keys, s.width}, dtype, 2);
        const Tensor v = random({2, s.keys, s.value_width}, dtype, 3);
        const Tensor grad = random({2, s.queries, s.value_width}, dtype, 4);
        AttentionOptions options{.is_causal = is_causal, .scale = 0.3};
        check(grad, q, k, v, options, tolerance_of(dtype));
      }
    }
  }
}

TEST_CASE("attention with masks: bool and additive, broadcast over every dimension, strided") {
  const Tensor q = random({2, 3, 5, 4}, kFloat32, 1);
  const Tensor k = random({2, 3, 300, 4}, kFloat32, 2);
  const Tensor v = random({2, 3, 300, 4}, kFloat32, 3);
  const Tensor grad = random({2, 3, 5, 4}, kFloat32, 4);
  for (const Shape& sizes : {Shape{2, 3, 5, 300}, Shape{2, 1, 5, 300}, Shape{3, 1, 300}, Shape{5, 300}, Shape{300},
                             Shape{2, 1, 1, 1}, Shape{}, Shape{5, 1}}) {
    CAPTURE(to_string(sizes));
    const Tensor bias = random(sizes, kFloat32, 5);
    AttentionOptions options{.mask = bias, .scale = 0.5};
    check(grad, q, k, v, options, 1e-5);
    options.mask = compare_scalar(bias, 0, CompareOp::Greater);
    check(grad, q, k, v, options, 1e-5);
  }
  AttentionOptions options{.mask = view::transpose(random({300, 5}, kFloat32, 5), 0, 1)};
  check(grad, q, k, v, options, 1e-5);
  // A float32 mask with half operands.
  check(cast(grad, kFloat16), cast(q, kFloat16), cast(k, kFloat16), cast(v, kFloat16), options, 3e-3);
}

TEST_CASE("attention takes heads from inside of rows, expanded and transposed operands") {
  // [batch, length, heads, width], viewed as [batch, heads, length, width].
  const Tensor base = random({2, 70, 3, 3, 8}, kFloat32, 1);
  const auto part = [&](int64_t which) { return view::transpose(view::select(base, 2, which), 1, 2); };
  const Tensor grad = view::transpose(random({2, 70, 3, 8}, kFloat32, 2), 1, 2);
  check(grad, part(0), part(1), part(2), {.is_causal = true, .scale = 0.4}, 1e-5);
  const Tensor turned = view::transpose(random({2, 3, 8, 70}, kFloat32, 3), 2, 3);
  check(grad, turned, part(1), turned, {.scale = 0.4}, 1e-5);
  const Tensor one_row = view::expand(random({2, 3, 1, 8}, kFloat32, 3), {2, 3, 70, 8});
  check(view::expand(random({}, kFloat32, 2), {2, 3, 70, 8}), part(0), one_row, part(2), {.scale = 0.4}, 1e-5);
}

TEST_CASE("attention: a row without keys gives zeros, and no gradient") {
  const Tensor q = random({2, 4, 8}, kFloat32, 1);
  const Tensor k = random({2, 5, 8}, kFloat32, 2);
  const Tensor v = random({2, 5, 8}, kFloat32, 3);
  const Tensor grad = ones({2, 4, 8});
  Tensor allowed = ones({4, 5}, kBool);
  fill(view::select(allowed, 0, 1), 0);
  AttentionOptions options{.mask = allowed};
  check(grad, q, k, v, options, 1e-5);
  const Attention result = attention(q, k, v, options);
  CHECK(view::select(result.out, 1, 1).to_vector<float>() == std::vector<float>(2 * 8));
  CHECK(result.logsumexp.to_vector<float>()[1] == -std::numeric_limits<float>::infinity());
  // An additive mask of -inf has the same effect.
  Tensor bias = zeros({4, 5});
  fill(view::select(bias, 0, 1), -INFINITY);
  options.mask = bias;
  check(grad, q, k, v, options, 1e-5);
  // No keys, no queries, no heads, or no width.
  for (const auto& [queries, keys, heads, width] :
       std::vector<std::array<int64_t, 4>>{{4, 0, 2, 8}, {0, 5, 2, 8}, {4, 5, 0, 8}, {4, 5, 2, 0}}) {
    check(ones({heads, queries, 3}), zeros({heads, queries, width}), zeros({heads, keys, width}),
          ones({heads, keys, 3}), {}, 1e-5);
  }
}

TEST_CASE("attention: large scores do not overflow, a NaN and an infinite score stay in their row") {
  const Tensor q = random({4, 8}, kFloat32, 1);
  const Tensor k = random({300, 8}, kFloat32, 2);
  const Tensor v = random({300, 8}, kFloat32, 3);
  check(ones({4, 8}), q, k, v, {.scale = 1e3}, 1e-3);
  for (const float odd : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Tensor bias = zeros({4, 300});
    bias.data_ptr<float>()[2 * 300 + 280] = odd;
    const auto out = attention(q, k, v, {.mask = bias}).out.to_vector<float>();
    for (size_t i = 0; i < out.size(); ++i)
      CHECK(std::isnan(out[i]) == (i / 8 == 2));
  }
}

TEST_CASE("attention's dropout is that of the probabilities") {
  const Tensor q = random({2, 3, 9, 4}, kFloat64, 1);
  const Tensor k = random({2, 3, 261, 4}, kFloat64, 2);
  const Tensor v = random({2, 3, 261, 4}, kFloat64, 3);
  const Tensor grad = random({2, 3, 9, 4}, kFloat64, 4);
  for (const double p : {0.3, 1.0}) {
    AttentionOptions options{.scale = 0.5, .dropout_p = p, .state = {7, 11}};
    check(grad, q, k, v, options, 1e-13, dropout(ones({2, 3, 9, 261}, kFloat64), p, options.state));
  }
}

TEST_CASE("attention's backward computes what is wanted, and the same bits each time") {
  const Tensor q = random({3, 100, 16}, kFloat32, 1);
  const Tensor k = random({3, 300, 16}, kFloat32, 2);
  const Tensor v = random({3, 300, 16}, kFloat32, 3);
  const Tensor grad = random({3, 100, 16}, kFloat32, 4);
  const Attention result = attention(q, k, v, {});
  const AttentionGradients all = attention_backward(grad, q, k, v, result, {}, {});
  for (int which = 0; which < 8; ++which) {
    const AttentionWanted wanted{(which & 1) != 0, (which & 2) != 0, (which & 4) != 0};
    const AttentionGradients some = attention_backward(grad, q, k, v, result, {}, wanted);
    CHECK(some.q.defined() == wanted.q);
    CHECK(some.k.defined() == wanted.k);
    CHECK(some.v.defined() == wanted.v);
    if (wanted.q) CHECK(some.q.to_vector<float>() == all.q.to_vector<float>());
    if (wanted.k) CHECK(some.k.to_vector<float>() == all.k.to_vector<float>());
    if (wanted.v) CHECK(some.v.to_vector<float>() == all.v.to_vector<float>());
  }
}

TEST_CASE("attention says what does not fit") {
  const Tensor x = ones({2, 3, 4});
  CHECK_THROWS_WITH_AS(attention(ones({4}), ones({4}), ones({4}), {}),
                       doctest::Contains("expected query [..., queries, width]"), ShapeError);
  CHECK_THROWS_WITH_AS(attention(x, ones({2, 3, 5}), x, {}), doctest::Contains("key float32 [2, 3, 5]"), ShapeError);
  CHECK_THROWS_AS(attention(x, ones({2, 5, 4}), x, {}), ShapeError);
  CHECK_THROWS_AS(attention(x, ones({1, 3, 4}), x, {}), ShapeError);
  CHECK_THROWS_AS(attention(x, x, ones({3, 4}), {}), ShapeError);
  CHECK_THROWS_WITH_AS(attention(x, x, cast(x, kFloat64), {}),
                       doctest::Contains("query, key and value of one floating dtype"), DTypeError);
  const Tensor whole = cast(x, kInt64);
  CHECK_THROWS_AS(attention(whole, whole, whole, {}), DTypeError);
  CHECK_THROWS_WITH_AS(attention(x, x, x, {.mask = ones({2, 3})}),
                       doctest::Contains("broadcasts to the scores' shape [2, 3, 3], got float32 [2, 3]"), ShapeError);
  CHECK_THROWS_AS(attention(x, x, x, {.mask = ones({1, 2, 3, 3})}), ShapeError);
  CHECK_THROWS_WITH_AS(attention(x, x, x, {.mask = ones({3, 3}, kInt64)}), doctest::Contains("got int64"), DTypeError);
  CHECK_THROWS_WITH_AS(attention(x, x, x, {.mask = ones({3, 3}), .is_causal = true}),
                       doctest::Contains("Explicit attn_mask should not be set when is_causal=True"), ValueError);
  CHECK_THROWS_AS(attention(x, x, x, {.dropout_p = 1.5}), ValueError);
  CHECK_THROWS_AS(attention_backward(ones({2, 3, 5}), x, x, x, attention(x, x, x, {}), {}, {}), ShapeError);
}

}  // namespace brigade::test::attention_test
