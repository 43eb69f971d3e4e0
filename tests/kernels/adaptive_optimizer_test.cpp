// Steps of RMSprop, Adagrad, Adadelta, RAdam, NAdam and Lion over many parameters, against plain loops in double.
#include <brigade/core/factory.h>
#include <brigade/kernels/optimizer.h>

#include <kernels/steps.h>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace brigade::test::adaptive_optimizer_test {
using namespace brigade::kernels;
using doctest::Contains;
using test::check_steps;
using test::Lists;

namespace {

using Values = std::vector<double>;
using List = std::vector<Tensor>;

double slope(const Values& v, bool maximize, double weight_decay) {
  return (maximize ? -v[1] : v[1]) + weight_decay * v[0];
}

// `average` and `buffer`: indices in `v` of the gradient average and of the momentum buffer; 0 for none.
void plain_rmsprop(Values& v, const RmspropParams& r, size_t average, size_t buffer) {
  const double g = slope(v, r.maximize, r.weight_decay);
  v[2] = r.alpha * v[2] + (1 - r.alpha) * g * g;
  double variance = v[2];
  if (average > 0) {
    v[average] = r.alpha * v[average] + (1 - r.alpha) * g;
    variance -= v[average] * v[average];
  }
  double move = g / (std::sqrt(variance) + r.eps);
  if (buffer > 0) move = v[buffer] = r.momentum * v[buffer] + move;
  v[0] -= r.lr * move;
}

// Updates the moments and decays the parameter as Adam does; returns the gradient including weight decay.
template <class Params>
double plain_moments(Values& v, const Params& p) {
  const double g = slope(v, p.maximize, p.decoupled_weight_decay ? 0 : p.weight_decay);
  if (p.decoupled_weight_decay) v[0] -= p.lr * p.weight_decay * v[0];
  v[2] = p.beta1 * v[2] + (1 - p.beta1) * g;
  v[3] = p.beta2 * v[3] + (1 - p.beta2) * g * g;
  return g;
}

// Algorithm 2 of the paper, with eps added where PyTorch adds it.
void plain_radam(Values& v, const RAdamParams& r) {
  plain_moments(v, r);
  const auto t = static_cast<double>(r.step);
  const double power = std::pow(r.beta2, t), mean = v[2] / (1 - std::pow(r.beta1, t));
  const double longest = 2 / (1 - r.beta2) - 1, length = longest - 2 * t * power / (1 - power);
  if (length <= 5) {
    v[0] -= r.lr * mean;
    return;
  }
  const double rectification =
      std::sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length));
  v[0] -= r.lr * mean * rectification * std::sqrt(1 - power) / (std::sqrt(v[3]) + r.eps);
}

double plain_mu(const NAdamParams& n, int64_t step) {
  return n.beta1 * (1 - std::pow(0.96, static_cast<double>(step) * n.momentum_decay) / 2);
}
void plain_nadam(Values& v, const NAdamParams& n) {
  const double g = plain_moments(v, n);
  const double now = plain_mu(n, n.step), next = plain_mu(n, n.step + 1);
  const double mean = next * v[2] / (1 - n.mu_product * next) + (1 - now) * g / (1 - n.mu_product);
  v[0] -= n.lr * mean / (std::sqrt(v[3] / (1 - std::pow(n.beta2, static_cast<double>(n.step)))) + n.eps);
}

void plain_lion(Values& v, const LionParams& l) {
  const double g = slope(v, l.maximize, 0);
  const double direction = l.beta1 * v[2] + (1 - l.beta1) * g;
  v[0] -= l.lr * l.weight_decay * v[0];
  v[0] -= direction > 0 ? l.lr : direction < 0 ? -l.lr : 0;
  v[2] = l.beta2 * v[2] + (1 - l.beta2) * g;
}

}  // namespace

TEST_CASE("a step of RMSprop, centered or not, with momentum or not, is that of plain loops") {
  for (const bool maximize : {false, true}) {
    CAPTURE(maximize);
    const RmspropParams r{0.01, 0.9, 1e-3, 0.1, 0.8, maximize};
    check_steps(
        {1}, [&](const Lists& x) { foreach_rmsprop_step(x[0], x[1], x[2], {}, {}, r); },
        [&](Values& v) { plain_rmsprop(v, r, 0, 0); });
    check_steps(
        {1, 1}, [&](const Lists& x) { foreach_rmsprop_step(x[0], x[1], x[2], {}, x[3], r); },
        [&](Values& v) { plain_rmsprop(v, r, 0, 3); });
    // Gradient averages small enough against the averages of squares that variances are positive.
    check_steps(
        {1, 0.1}, [&](const Lists& x) { foreach_rmsprop_step(x[0], x[1], x[2], x[3], {}, r); },
        [&](Values& v) { plain_rmsprop(v, r, 3, 0); });
    check_steps(
        {1, 0.1, 1}, [&](const Lists& x) { foreach_rmsprop_step(x[0], x[1], x[2], x[3], x[4], r); },
        [&](Values& v) { plain_rmsprop(v, r, 3, 4); });
  }
}

TEST_CASE("a step of Adagrad is that of plain loops") {
  for (const bool maximize : {false, true}) {
    for (const int64_t step : {1, 5}) {
      CAPTURE(maximize);
      CAPTURE(step);
      const AdagradParams a{0.1, 0.3, 1e-3, 0.1, step, maximize};
      check_steps(
          {1}, [&](const Lists& x) { foreach_adagrad_step(x[0], x[1], x[2], a); },
          [&](Values& v) {
            const double g = slope(v, a.maximize, a.weight_decay);
            v[2] += g * g;
            v[0] -= a.lr / (1 + static_cast<double>(a.step - 1) * a.lr_decay) * g / (std::sqrt(v[2]) + a.eps);
          });
    }
  }
}

TEST_CASE("a step of Adadelta is that of plain loops") {
  for (const bool maximize : {false, true}) {
    CAPTURE(maximize);
    const AdadeltaParams a{0.5, 0.9, 1e-3, 0.1, maximize};
    check_steps(
        {1, 0.2}, [&](const Lists& x) { foreach_adadelta_step(x[0], x[1], x[2], x[3], a); },
        [&](Values& v) {
          const double g = slope(v, a.maximize, a.weight_decay);
          v[2] = a.rho * v[2] + (1 - a.rho) * g * g;
          const double delta = std::sqrt(v[3] + a.eps) / std::sqrt(v[2] + a.eps) * g;
          v[3] = a.rho * v[3] + (1 - a.rho) * delta * delta;
          v[0] -= a.lr * delta;
        });
  }
}

TEST_CASE("a step of RAdam, before and after its variance has a bound, is that of plain loops") {
  for (const bool decoupled : {false, true}) {
    for (const int64_t step : {1, 5, 6, 40, 5000}) {
      CAPTURE(decoupled);
      CAPTURE(step);
      const RAdamParams r{0.01, 0.9, 0.999, 1e-3, 0.1, step, decoupled, !decoupled};
      check_steps(
          {1, 1}, [&](const Lists& x) { foreach_radam_step(x[0], x[1], x[2], x[3], r); },
          [&](Values& v) { plain_radam(v, r); });
    }
  }
}

TEST_CASE("a step of NAdam is that of plain loops") {
  for (const bool decoupled : {false, true}) {
    for (const int64_t step : {1, 2, 100}) {
      CAPTURE(decoupled);
      CAPTURE(step);
      NAdamParams n{0.01, 0.9, 0.99, 1e-3, 0.1, 4e-3, step, 1, decoupled, !decoupled};
      for (int64_t t = 1; t <= step; ++t)
        n.mu_product *= plain_mu(n, t);
      CHECK(nadam_mu(n.beta1, n.momentum_decay, step) == doctest::Approx(plain_mu(n, step)));
      check_steps(
          {1, 1}, [&](const Lists& x) { foreach_nadam_step(x[0], x[1], x[2], x[3], n); },
          [&](Values& v) { plain_nadam(v, n); });
    }
  }
}

TEST_CASE("a step of Lion is that of plain loops; the sign of 0 is 0, and a NaN stays one") {
  for (const bool maximize : {false, true}) {
    CAPTURE(maximize);
    const LionParams l{0.1, 0.9, 0.99, 0.2, maximize};
    check_steps(
        {1}, [&](const Lists& x) { foreach_lion_step(x[0], x[1], x[2], l); }, [&](Values& v) { plain_lion(v, l); });
  }
  for (const DType dtype : test::kEveryFloating) {
    CAPTURE(std::string(name(dtype)));
    const List param{full({3}, 1, dtype)}, mean{zeros({3}, dtype)};
    const List grad{cast(tensor<double>({0, std::nan(""), -2}), dtype)};
    foreach_lion_step(param, grad, mean, {0.5, 0.9, 0.5, 0, false});
    CHECK(test::at(param[0], 0) == 1);
    CHECK(std::isnan(test::at(param[0], 1)));
    CHECK(test::at(param[0], 2) == 1.5);
    CHECK(test::at(mean[0], 2) == -1);
  }
}

TEST_CASE("lists of adaptive steps that do not fit are named, and nothing moves") {
  const List two{ones({2}), ones({2})}, one{ones({2})}, gaps{ones({2}), view::slice(ones({4}), 0, 0, 4, 2)};
  CHECK_THROWS_WITH_AS(foreach_rmsprop_step(two, two, one, {}, {}, {}),
                       Contains("foreach_rmsprop_step: expected one square_avg per parameter, got 1 for 2"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(foreach_rmsprop_step(two, two, two, one, {}, {}), Contains("one grad_avg per parameter"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(foreach_rmsprop_step(two, two, two, {}, gaps, {}),
                       Contains("momentum buffer must be contiguous and like the parameter"), ShapeError);
  CHECK_THROWS_WITH_AS(foreach_adagrad_step(two, two, one, {}), Contains("foreach_adagrad_step: expected one sum"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(foreach_adadelta_step(two, two, two, one, {}),
                       Contains("foreach_adadelta_step: expected one acc_delta"), ShapeError);
  CHECK_THROWS_WITH_AS(foreach_radam_step(two, two, one, two, {}), Contains("foreach_radam_step: expected one exp_avg"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(foreach_nadam_step(two, two, two, one, {}),
                       Contains("foreach_nadam_step: expected one exp_avg_sq"), ShapeError);
  CHECK_THROWS_WITH_AS(foreach_lion_step(two, gaps, two, {}), Contains("gradient must be contiguous"), ShapeError);
  const List whole{ones({2}, kInt64)}, mixed{ones({2}), ones({2}, kFloat64)};
  CHECK_THROWS_WITH_AS(foreach_lion_step(whole, whole, whole, {}), Contains("tensors of one floating dtype"),
                       DTypeError);
  CHECK_THROWS_AS(foreach_adagrad_step(mixed, mixed, mixed, {}), DTypeError);
  for (const List* list : {&two, &one, &gaps}) {
    for (const Tensor& tensor : *list)
      CHECK(tensor.to_vector<double>() == Values{1, 1});
  }
  foreach_rmsprop_step(List{}, List{}, List{}, {}, {}, {});
  foreach_adagrad_step(List{}, List{}, List{}, {});
  foreach_adadelta_step(List{}, List{}, List{}, List{}, {});
  foreach_radam_step(List{}, List{}, List{}, List{}, {});
  foreach_nadam_step(List{}, List{}, List{}, List{}, {});
  foreach_lion_step(List{}, List{}, List{}, {});
}

}  // namespace brigade::test::adaptive_optimizer_test
