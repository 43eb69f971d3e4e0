// Losses of an input and a target against their definitions.
#include <brigade/core/view.h>
#include <brigade/kernels/cpu/detail/math.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/loss.h>

#include <near.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace brigade::test::loss_test {
using test::check_near;
using namespace brigade::kernels;

namespace {

using Function = std::function<double(double, double)>;
struct Row {
  PairLoss loss;
  Function value, input_slope, target_slope;
};

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

const std::vector<Row> kLosses{
    {{PairLossKind::Squared},
     [](double x, double z) { return (x - z) * (x - z); },
     [](double x, double z) { return 2 * (x - z); },
     [](double x, double z) { return 2 * (z - x); }},
    {{PairLossKind::Absolute},
     [](double x, double z) { return std::abs(x - z); },
     [](double x, double z) { return (x > z) - (x < z); },
     [](double x, double z) { return (x < z) - (x > z); }},
    {{PairLossKind::SmoothL1, 0.25},
     [](double x, double z) { return std::abs(x - z) < 0.25 ? 2 * (x - z) * (x - z) : std::abs(x - z) - 0.125; },
     [](double x, double z) { return std::clamp((x - z) / 0.25, -1.0, 1.0); },
     [](double x, double z) { return std::clamp((z - x) / 0.25, -1.0, 1.0); }},
    {{PairLossKind::Huber, 0.25},
     [](double x, double z) {
       return std::abs(x - z) < 0.25 ? (x - z) * (x - z) / 2 : 0.25 * (std::abs(x - z) - 0.125);
     },
     [](double x, double z) { return std::clamp(x - z, -0.25, 0.25); },
     [](double x, double z) { return std::clamp(z - x, -0.25, 0.25); }},
    {{PairLossKind::BinaryCrossEntropy},
     [](double x, double z) { return -z * std::log(x) - (1 - z) * std::log(1 - x); },
     [](double x, double z) { return (1 - z) / (1 - x) - z / x; },
     [](double x, double) { return std::log(1 - x) - std::log(x); }},
    {{PairLossKind::BceWithLogits},
     [](double x, double z) { return -z * std::log(logistic(x)) - (1 - z) * std::log(1 - logistic(x)); },
     [](double x, double z) { return logistic(x) - z; },
     [](double x, double) { return -x; }},
    {{PairLossKind::KlDivergence},
     [](double x, double z) { return z * (std::log(z) - x); },
     [](double, double z) { return -z; },
     [](double x, double z) { return std::log(z) + 1 - x; }},
    {{PairLossKind::KlDivergenceLog},
     [](double x, double z) { return std::exp(z) * (z - x); },
     [](double, double z) { return -std::exp(z); },
     [](double x, double z) { return std::exp(z) * (z - x + 1); }},
};

// In 0.02 .. 0.98, so that logarithms stay small.
Tensor probabilities(const Shape& sizes, uint64_t seed, DType dtype) {
  RandomGenerator generator(seed);
  return cast(binary_scalar(binary_scalar(rand(sizes, kFloat64, &generator), 0.96, BinaryOp::Mul, false), 0.02,
                            BinaryOp::Add, false),
              dtype);
}

std::vector<double> map(const Tensor& x, const Tensor& z, const Function& f) {
  const std::vector<double> a = x.to_vector<double>(), b = z.to_vector<double>();
  std::vector<double> result;
  for (size_t i = 0; i < a.size(); ++i)
    result.push_back(f(a[i], b[i]));
  return result;
}

double sum_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values)
    sum += value;
  return sum;
}

}  // namespace

TEST_CASE("losses and their derivatives on both sides, for every dtype and reduction, with odd and long sizes") {
  for (const Row& row : kLosses) {
    CAPTURE(std::string(name(row.loss.kind)));
    for (const auto& [dtype, bound] : std::vector<std::pair<DType, double>>{
             {kFloat64, 1e-12}, {kFloat32, 5e-6}, {kFloat16, 4e-3}, {kBFloat16, 2e-2}}) {
      CAPTURE(std::string(name(dtype)));
      for (const Shape& sizes : std::vector<Shape>{{1}, {3, 5}, {10'001}}) {
        const Tensor x = probabilities(sizes, 1, dtype);
        const Tensor z = probabilities(sizes, 2, dtype);
        const std::vector<double> losses = map(x, z, row.value);
        const double sum = sum_of(losses);
        const auto count = static_cast<double>(losses.size());
        check_near(pair_loss(x, z, row.loss, Reduction::None), losses, bound);
        check_near(pair_loss(x, z, row.loss, Reduction::Mean), {sum / count}, bound);
        if (dtype != kFloat16) check_near(pair_loss(x, z, row.loss, Reduction::Sum), {sum}, bound);
        CHECK(pair_loss(x, z, row.loss, Reduction::Mean).dim() == 0);

        for (const PairSide side : {PairSide::Input, PairSide::Target}) {
          std::vector<double> slopes = map(x, z, side == PairSide::Input ? row.input_slope : row.target_slope);
          const Tensor grads = probabilities(sizes, 3, dtype);
          const std::vector<double> g = grads.to_vector<double>();
          std::vector<double> each, mean;
          for (size_t i = 0; i < slopes.size(); ++i) {
            each.push_back(slopes[i] * g[i]);
            mean.push_back(slopes[i] * 0.5 / count);
          }
          check_near(pair_loss_backward(grads, x, z, row.loss, side, Reduction::None), each, 4 * bound);
          check_near(pair_loss_backward(full({}, 0.5, dtype), x, z, row.loss, side, Reduction::Mean), mean, 4 * bound);
        }
      }
    }
  }
}

TEST_CASE("log and log1p in float32 are within a few units in the last place") {
  double worst = 0, worst1 = 0;
  const auto error = [](float found, double expected) {
    const double ulp = std::abs(std::nextafter(static_cast<float>(expected), INFINITY) - static_cast<float>(expected));
    return std::abs(found - expected) / ulp;
  };
  for (const float x : {1e-45F, 1e-44F, 3e-42F, 1e-39F})  // subnormal numbers
    worst = test::worse(worst, error(cpu::log(x), std::log(static_cast<double>(x))));
  for (float x = 2e-38F; x < 3e38F; x *= 1.0037F)
    worst = test::worse(worst, error(cpu::log(x), std::log(static_cast<double>(x))));
  for (float x = 0.5F; x < 2; x += 1.7e-5F)
    worst = test::worse(worst, error(cpu::log(x), std::log(static_cast<double>(x))));
  for (float x = 1e-30F; x < 1; x *= 1.0037F) {
    for (const float y : {x, -x})
      worst1 = test::worse(worst1, error(cpu::log1p(y), std::log1p(static_cast<double>(y))));
    worst1 = test::worse(worst1, error(cpu::log1p_unit(x), std::log1p(static_cast<double>(x))));
  }
  MESSAGE("worst error in ulp: log " << worst << ", log1p " << worst1);
  CHECK(worst < 3);
  CHECK(worst1 < 4);
  CHECK(cpu::log(0.0F) == -INFINITY);
  CHECK(cpu::log(-0.0F) == -INFINITY);
  CHECK(cpu::log(INFINITY) == INFINITY);
  CHECK(std::isnan(cpu::log(-1.0F)));
  CHECK(std::isnan(cpu::log(NAN)));
  CHECK(cpu::log1p(-1.0F) == -INFINITY);
  CHECK(std::isnan(cpu::log1p(-1.5F)));
}

TEST_CASE("losses where their pieces meet, at the ends of the range, and of NaN") {
  const double inf = INFINITY;
  const auto each = [](PairLoss loss, double x, double z) {
    return pair_loss(full({1}, x, kFloat32), full({1}, z, kFloat32), loss, Reduction::None).to_vector<double>()[0];
  };
  const auto slope = [](PairLoss loss, double x, double z, PairSide side = PairSide::Input) {
    return pair_loss_backward(ones({}), full({1}, x, kFloat32), full({1}, z, kFloat32), loss, side, Reduction::None)
        .to_vector<double>()[0];
  };
  CHECK(slope({PairLossKind::Absolute}, 2, 2) == 0);
  CHECK(slope({PairLossKind::SmoothL1, 0.5}, 1.5, 1) == 1);
  CHECK(slope({PairLossKind::Huber, 0.5}, 1.5, 1) == 0.5);
  CHECK(slope({PairLossKind::Huber, 0.5}, -7, 1) == -0.5);
  CHECK(std::isnan(slope({PairLossKind::SmoothL1, 0.5}, NAN, 1)));
  CHECK(std::isnan(each({PairLossKind::Absolute}, NAN, 1)));

  // Logarithms are clamped to at least -100.
  const PairLoss bce{PairLossKind::BinaryCrossEntropy};
  CHECK(each(bce, 0, 1) == 100);
  CHECK(each(bce, 1, 0) == 100);
  CHECK(each(bce, 0, 0) == 0);
  CHECK(slope(bce, 0, 1) == doctest::Approx(-1e12));
  CHECK(slope(bce, 0, 1, PairSide::Target) == inf);
  CHECK_THROWS_WITH_AS(each(bce, 1.5, 1), doctest::Contains("between 0 and 1, got 1.5"), ValueError);
  CHECK_THROWS_AS(each(bce, NAN, 1), ValueError);

  const PairLoss logits{PairLossKind::BceWithLogits};
  CHECK(each(logits, 1000, 1) == 0);
  CHECK(each(logits, -1000, 1) == 1000);
  CHECK(each(logits, 1000, 0) == 1000);
  CHECK(slope(logits, -1000, 1) == -1);
  CHECK(std::isnan(each(logits, NAN, 1)));
  for (const double x : {-20.0, -3.0, -0.1, 0.0, 0.7, 5.0, 30.0})
    CHECK(each(logits, x, 0) == doctest::Approx(std::log1p(std::exp(x))).epsilon(3e-7));

  const PairLoss divergence{PairLossKind::KlDivergence};
  CHECK(each(divergence, -1, 0) == 0);
  CHECK(std::isnan(slope(divergence, -1, 0, PairSide::Target)));
  CHECK(std::isnan(each(divergence, -1, -0.5)));
}

TEST_CASE("losses of views and of nothing; sums of half types; errors name shapes and dtypes") {
  const Tensor x = probabilities({4, 6}, 1, kFloat32);
  const Tensor z = probabilities({6, 4}, 2, kFloat32);
  const PairLoss squared{PairLossKind::Squared};
  const Tensor turned = view::transpose(z, 0, 1);
  CHECK(pair_loss(x, turned, squared, Reduction::None).to_vector<double>() ==
        pair_loss(x, clone(turned), squared, Reduction::None).to_vector<double>());
  CHECK(pair_loss_backward(turned, x, turned, squared, PairSide::Input, Reduction::None).to_vector<double>() ==
        pair_loss_backward(clone(turned), x, clone(turned), squared, PairSide::Input, Reduction::None)
            .to_vector<double>());

  const Tensor none = zeros({0, 3});
  CHECK(pair_loss(none, none, squared, Reduction::Sum).to_vector<double>() == std::vector<double>{0});
  CHECK(std::isnan(pair_loss(none, none, squared, Reduction::Mean).to_vector<double>()[0]));
  CHECK(pair_loss_backward(ones({}), none, none, squared, PairSide::Input, Reduction::Mean).sizes() == Shape{0, 3});

  // The sum overflows float16, the mean does not.
  const Tensor far = full({3000}, 10, kFloat16);
  CHECK(pair_loss(far, zeros_like(far), squared, Reduction::Mean).to_vector<double>()[0] == 100);

  CHECK_THROWS_WITH_AS(pair_loss(x, z, squared, Reduction::Sum),
                       doctest::Contains("mse_loss: expected a target like the input float32 [4, 6], got"), ShapeError);
  CHECK_THROWS_AS(pair_loss(x, cast(x, kFloat64), squared, Reduction::Sum), DTypeError);
  CHECK_THROWS_AS(pair_loss(ones({2}, kInt64), ones({2}, kInt64), squared, Reduction::Sum), DTypeError);
  CHECK_THROWS_WITH_AS(pair_loss_backward(ones({2}), x, x, squared, PairSide::Input, Reduction::None),
                       doctest::Contains("expected a gradient [] or [4, 6]"), ShapeError);
}

}  // namespace brigade::test::loss_test
