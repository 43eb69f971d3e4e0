#include <nn/models.h>

#include <doctest/doctest.h>

#include <cmath>

using namespace brigade;
using namespace brigade::test;
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
