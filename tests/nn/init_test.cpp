#include <nn/models.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

namespace brigade::test::init_test {
using nn::init::FanMode;
using nn::init::Nonlinearity;

namespace {
struct Moments {
  double mean = 0, variance = 0, largest = 0, kurtosis = 0;
};
Moments moments_of(const Tensor& tensor) {
  Moments m;
  const auto values = doubles(tensor);
  const auto count = static_cast<double>(values.size());
  for (const double v : values) {
    m.mean += v / count;
    m.largest = std::max(m.largest, std::abs(v));
  }
  for (const double v : values)
    m.variance += (v - m.mean) * (v - m.mean) / count;
  for (const double v : values)
    m.kurtosis += std::pow(v - m.mean, 4) / count / (m.variance * m.variance);
  return m;
}
}  // namespace

TEST_CASE("each initialiser has the bounds and moments of its distribution") {
  struct Case {
    const char* name;
    std::function<void(const Tensor&)> fill;
    double mean, deviation;
    bool uniform;
  };
  // [100, 50, 3, 3]: fan in 450, fan out 900.
  const std::vector<Case> cases = {
      {"uniform_", [](const Tensor& t) { nn::init::uniform_(t, 1, 5); }, 3, 4 / std::sqrt(12.0), true},
      {"normal_", [](const Tensor& t) { nn::init::normal_(t, 2, 3); }, 2, 3, false},
      {"kaiming_uniform_", [](const Tensor& t) { nn::init::kaiming_uniform_(t); }, 0, std::sqrt(2.0 / 450), true},
      {"kaiming_uniform_ a", [](const Tensor& t) { nn::init::kaiming_uniform_(t, 2); }, 0, std::sqrt(0.4 / 450), true},
      {"kaiming_normal_", [](const Tensor& t) { nn::init::kaiming_normal_(t); }, 0, std::sqrt(2.0 / 450), false},
      {"kaiming_normal_ fan out",
       [](const Tensor& t) { nn::init::kaiming_normal_(t, 0, FanMode::FanOut, Nonlinearity::Tanh); }, 0,
       5.0 / 3 / std::sqrt(900.0), false},
      {"xavier_uniform_", [](const Tensor& t) { nn::init::xavier_uniform_(t, 2); }, 0, 2 * std::sqrt(2.0 / 1350), true},
      {"xavier_normal_", [](const Tensor& t) { nn::init::xavier_normal_(t); }, 0, std::sqrt(2.0 / 1350), false},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    manual_seed(11);
    const Tensor t = empty({100, 50, 3, 3});
    const uint32_t version = t.version();
    c.fill(t);
    CHECK(t.version() > version);
    const Moments m = moments_of(t);
    CHECK(std::abs(m.mean - c.mean) < 5 * c.deviation / std::sqrt(45000.0));
    CHECK(std::sqrt(m.variance) == doctest::Approx(c.deviation).epsilon(0.02));
    CHECK(m.kurtosis == doctest::Approx(c.uniform ? 1.8 : 3.0).epsilon(0.05));
    if (!c.uniform) continue;
    const double bound = c.deviation * std::sqrt(3.0);
    CHECK(m.largest <= std::abs(c.mean) + bound * (1 + 1e-6));
    CHECK(m.largest > std::abs(c.mean) + bound * 0.99);
  }
}

TEST_CASE("Linear and Conv2d start as in PyTorch: uniform within 1 / sqrt(fan_in), weight and bias") {
  manual_seed(4);
  nn::Linear linear(400, 300);
  nn::Conv2d conv(32, 300, {3, 5}, {.groups = 4});
  for (const auto& [tensor, fan] : std::vector<std::pair<Tensor, double>>{
           {linear->weight, 400}, {linear->bias, 400}, {conv->weight, 120}, {conv->bias, 120}}) {
    CAPTURE(tensor.sizes().numel());
    const Moments m = moments_of(tensor);
    CHECK(m.largest <= 1 / std::sqrt(fan) * (1 + 1e-6));
    CHECK(m.largest > 0.97 / std::sqrt(fan));
    CHECK(m.variance == doctest::Approx(1 / fan / 3).epsilon(0.2));
  }
}

TEST_CASE("the same seed gives the same model; another seed, and the next layer, another") {
  manual_seed(4);
  nn::Linear a(40, 30), next(40, 30);
  manual_seed(4);
  nn::Linear b(40, 30);
  manual_seed(5);
  nn::Linear c(40, 30);
  CHECK(floats(a->weight) == floats(b->weight));
  CHECK(floats(a->bias) == floats(b->bias));
  CHECK(floats(a->weight) != floats(c->weight));
  CHECK(floats(a->weight) != floats(next->weight));
  const Tensor x = empty({8}), y = empty({8});
  nn::init::normal_(x);
  nn::init::normal_(y);
  CHECK(floats(x) != floats(y));
}

TEST_CASE("constants, gains and errors") {
  const Tensor t = empty({2, 2});
  nn::init::ones_(t);
  CHECK(floats(t) == std::vector<float>(4, 1));
  nn::init::zeros_(t);
  CHECK(floats(t) == std::vector<float>(4, 0));
  CHECK(nn::init::calculate_gain(Nonlinearity::ReLU) == doctest::Approx(std::sqrt(2.0)));
  CHECK(nn::init::calculate_gain(Nonlinearity::LeakyReLU, 1) == 1);
  CHECK(nn::init::fans_of(empty({7, 5, 2})).out == 14);
  CHECK_THROWS_WITH_AS(nn::init::kaiming_uniform_(empty({3})), doctest::Contains("fewer than 2 dimensions"),
                       ShapeError);
  CHECK_THROWS_AS(nn::init::normal_(Tensor()), ValueError);
  CHECK_THROWS_AS(nn::init::uniform_(empty({3}, kInt64)), DTypeError);
}

TEST_CASE("the gain of every name") {
  using nn::init::calculate_gain;
  for (const char* name :
       {"linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid"})
    CHECK(calculate_gain(name) == 1);
  CHECK(calculate_gain("tanh") == 5.0 / 3);
  CHECK(calculate_gain("relu") == std::sqrt(2.0));
  CHECK(calculate_gain("leaky_relu") == std::sqrt(2.0 / 1.0001));
  CHECK(calculate_gain("leaky_relu", 2) == std::sqrt(0.4));
  CHECK(calculate_gain("selu") == 0.75);
  CHECK_THROWS_WITH_AS(calculate_gain("swish"), "Unsupported nonlinearity swish", ValueError);
}

TEST_CASE("trunc_normal_ has the moments of a normal distribution within its bounds, and nothing outside") {
  struct Case {
    double mean, stddev, a, b;
    double expected_mean, expected_deviation;
  };
  // Expected values from numerical integration.
  for (const Case& c :
       {Case{0, 1, -2, 2, 0, 0.879626}, Case{1, 2, 0, 3, 1.413262, 0.831320}, Case{0, 0.02, -2, 2, 0, 0.02},
        Case{0, 1, 3, 5, 3.282694, 0.264192}, Case{0, 1, -9, -4, -4.225607, 0.216039}}) {
    CAPTURE(c.a);
    manual_seed(8);
    const Tensor t = empty({300, 100}, kFloat64);
    const uint32_t version = t.version();
    nn::init::trunc_normal_(t, c.mean, c.stddev, c.a, c.b);
    CHECK(t.version() > version);
    const Moments m = moments_of(t);
    CHECK(std::abs(m.mean - c.expected_mean) < 5 * c.expected_deviation / std::sqrt(30000.0));
    CHECK(std::sqrt(m.variance) == doctest::Approx(c.expected_deviation).epsilon(0.02));
    for (const double v : doubles(t)) {
      CHECK(v >= c.a);
      CHECK(v <= c.b);
    }
  }
  CHECK_THROWS_AS(nn::init::trunc_normal_(empty({2}), 0, 1, 2, 1), ValueError);
  CHECK_THROWS_AS(nn::init::trunc_normal_(empty({2}), 0, 0), ValueError);
  CHECK_THROWS_AS(nn::init::trunc_normal_(Tensor()), ValueError);
  CHECK_THROWS_AS(nn::init::trunc_normal_(empty({2}, kInt64)), DTypeError);
}

TEST_CASE("eye_ and dirac_ place their ones as PyTorch does") {
  const Tensor matrix = empty({2, 3});
  nn::init::eye_(matrix);
  CHECK(floats(matrix) == std::vector<float>{1, 0, 0, 0, 1, 0});
  const Tensor kernel = empty({2, 2, 3});
  nn::init::dirac_(kernel);
  CHECK(floats(kernel) == std::vector<float>{0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0});
  const Tensor grouped = empty({4, 1, 2, 2});
  nn::init::dirac_(grouped, 2);
  CHECK(floats(grouped) == std::vector<float>{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0});
  // A convolution with this weight is the identity.
  nn::Conv2d conv(3, 3, 3, {.padding = 1, .bias = false});
  nn::init::dirac_(conv->weight.detach());
  const Tensor x = randn({1, 3, 4, 5});
  CHECK(floats(conv(x)) == floats(x));
  CHECK_THROWS_AS(nn::init::eye_(empty({2, 2, 2})), ShapeError);
  CHECK_THROWS_AS(nn::init::dirac_(empty({2, 2})), ShapeError);
  CHECK_THROWS_WITH_AS(nn::init::dirac_(empty({3, 2, 3}), 2), doctest::Contains("divisible by groups 2"), ShapeError);
}

TEST_CASE("orthogonal_ makes rows or columns orthonormal, in every direction alike") {
  manual_seed(9);
  for (const Shape& sizes : {Shape{6, 4}, Shape{4, 6}, Shape{5, 5}, Shape{3, 2, 2, 2}, Shape{64, 3}}) {
    const Tensor t = empty(sizes, kFloat64);
    nn::init::orthogonal_(t, 2);
    const int64_t rows = sizes[0], columns = t.numel() / rows;
    const Tensor matrix = t.reshape({rows, columns});
    const Tensor product = rows < columns ? matmul(matrix, matrix.t()) : matmul(matrix.t(), matrix);
    const auto values = doubles(product);
    const int64_t n = product.size(0);
    for (int64_t i = 0; i < n * n; ++i)
      CHECK(std::abs(values[static_cast<size_t>(i)] - (i % (n + 1) == 0 ? 4 : 0)) < 1e-13);
  }
  // The signs that the factorization chooses do not show in the result: determinants of both signs, elements of mean 0.
  double sum = 0, positive = 0;
  for (int turn = 0; turn < 400; ++turn) {
    const Tensor t = empty({2, 2}, kFloat64);
    nn::init::orthogonal_(t);
    const auto q = doubles(t);
    sum += q[0];
    positive += q[0] * q[3] - q[1] * q[2] > 0;
  }
  CHECK(std::abs(sum / 400) < 5 * std::sqrt(0.5 / 400));
  CHECK(std::abs(positive / 400 - 0.5) < 5 * 0.5 / 20);
  nn::init::orthogonal_(empty({0, 3}));
  CHECK_THROWS_AS(nn::init::orthogonal_(empty({3})), ShapeError);
}

TEST_CASE("sparse_ zeroes its part of every column") {
  manual_seed(10);
  const Tensor t = empty({101, 40}, kFloat64);
  nn::init::sparse_(t, 0.3, 0.5);
  const auto values = doubles(t);
  double squares = 0;
  std::vector<int> per_row(101);
  for (size_t column = 0; column < 40; ++column) {
    int zeros = 0;
    for (size_t row = 0; row < 101; ++row) {
      const double v = values[row * 40 + column];
      zeros += v == 0;
      per_row[row] += v == 0;
      squares += v * v;
    }
    CHECK(zeros == 31);
  }
  CHECK(std::sqrt(squares / (70 * 40)) == doctest::Approx(0.5).epsilon(0.05));
  CHECK(*std::max_element(per_row.begin(), per_row.end()) < 30);  // the zeros are not all in the same rows
  CHECK_THROWS_AS(nn::init::sparse_(empty({3}), 0.1), ShapeError);
  CHECK_THROWS_AS(nn::init::sparse_(empty({3, 3}), 1.5), ValueError);
}

}  // namespace brigade::test::init_test
