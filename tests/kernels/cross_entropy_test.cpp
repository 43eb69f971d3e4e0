// Cross entropy and negative log likelihood, compared with their definitions in double.
#include <brigade/core/view.h>
#include <brigade/kernels/activation.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/loss.h>

#include <near.h>

#include <doctest/doctest.h>

#include <cmath>

namespace brigade::test::cross_entropy_test {
using test::check_near;
using namespace brigade::kernels;

namespace {

Tensor random(const Shape& sizes, uint64_t seed, DType dtype = kFloat64) {
  RandomGenerator generator(seed);
  return cast(randn(sizes, kFloat64, &generator), dtype);
}

Tensor classes(const Shape& sizes, int64_t count, int64_t ignore_index) {
  Tensor target = empty(sizes, kInt64);
  for (int64_t i = 0; i < target.numel(); ++i)
    target.data_ptr<int64_t>()[i] = i % 5 == 3 ? ignore_index : i * 7919 % count;
  return target;
}

struct Reference {
  std::vector<double> losses, gradient;  // gradient of the sum of losses weighted by `slopes`
  double counted = 0;
};
// Reference over [rows, classes, spatial]; with `logits`, the inputs are first normalized.
Reference reference(const Tensor& x, const Tensor& target, const ClassLossOptions& options, bool logits,
                    const std::vector<double>& slopes) {
  const int64_t n = x.dim() == 1 ? 1 : x.size(0), c = x.size(x.dim() == 1 ? 0 : 1), s = target.numel() / n;
  const std::vector<double> values = x.to_vector<double>();
  const std::vector<int64_t> wanted = target.to_vector<int64_t>();
  const std::vector<double> weight =
      options.weight.defined() ? options.weight.to_vector<double>() : std::vector<double>(static_cast<size_t>(c), 1);
  Reference result;
  result.gradient.assign(values.size(), 0);
  for (int64_t i = 0; i < n * s; ++i) {
    const auto place = [&](int64_t k) { return static_cast<size_t>((i / s * c + k) * s + i % s); };
    const int64_t y = wanted[static_cast<size_t>(i)];
    if (y == options.ignore_index) {
      result.losses.push_back(0);
      continue;
    }
    double largest = -INFINITY, sum = 0, loss = 0, shares = 0;
    for (int64_t k = 0; k < c; ++k)
      largest = std::max(largest, values[place(k)]);
    for (int64_t k = 0; k < c; ++k)
      sum += std::exp(values[place(k)] - largest);
    const auto share = [&](int64_t k) {
      const double e = options.label_smoothing;
      return weight[static_cast<size_t>(k)] * ((k == y ? 1 - e : 0) + e / static_cast<double>(c));
    };
    for (int64_t k = 0; k < c; ++k) {
      const double log_prob = logits ? values[place(k)] - largest - std::log(sum) : values[place(k)];
      if (share(k) != 0) loss -= share(k) * log_prob;
      shares += share(k);
    }
    for (int64_t k = 0; k < c; ++k) {
      const double pull = logits ? shares * std::exp(values[place(k)] - largest) / sum : 0;
      result.gradient[place(k)] = slopes[static_cast<size_t>(i)] * (pull - share(k));
    }
    result.losses.push_back(loss);
    result.counted += weight[static_cast<size_t>(y)];
  }
  return result;
}

double total(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values)
    sum += value;
  return sum;
}

}  // namespace

TEST_CASE("rows and columns, weights, smoothing and ignored targets, for every dtype and reduction") {
  for (const auto& [dtype, bound] : std::vector<std::pair<DType, double>>{
           {kFloat64, 1e-12}, {kFloat32, 1e-5}, {kFloat16, 5e-3}, {kBFloat16, 4e-2}}) {
    CAPTURE(name(dtype));
    for (const Shape& sizes : std::vector<Shape>{{7}, {4, 3}, {5, 37}, {33, 1000}, {2, 5, 3, 4}, {2, 3, 70}}) {
      CAPTURE(to_string(sizes));
      const Tensor x = random(sizes, 1, dtype);
      Shape positions = sizes;
      positions.erase(sizes.size() == 1 ? 0 : 1);
      const int64_t count = sizes[sizes.size() == 1 ? 0 : 1];
      const Tensor target = classes(positions, count, 1);
      for (const bool weights : {false, true}) {
        for (const double smoothing : {0.0, 0.2, 1.0}) {
          CAPTURE(weights);
          CAPTURE(smoothing);
          ClassLossOptions options{Reduction::None, 1, {}, smoothing};
          if (weights) options.weight = unary(random({count}, 3, dtype), UnaryOp::Abs);
          const Tensor grads = random(positions, 4, dtype);
          const Reference each = reference(x, target, options, true, grads.to_vector<double>());
          const CrossEntropy found = cross_entropy(x, target, options);
          check_near(found.loss, each.losses, bound);
          CHECK(found.log_sums.dtype() == (dtype == kFloat64 ? kFloat64 : kFloat32));
          check_near(cross_entropy_backward(grads, x, target, found.log_sums, found.denominator, options),
                     each.gradient, bound);

          options.reduction = Reduction::Sum;
          if (dtype != kFloat16) check_near(cross_entropy(x, target, options).loss, {total(each.losses)}, bound);
          CHECK_FALSE(cross_entropy(x, target, options).denominator.defined());

          options.reduction = Reduction::Mean;
          const CrossEntropy mean = cross_entropy(x, target, options);
          if (each.counted == 0) continue;
          check_near(mean.loss, {total(each.losses) / each.counted}, bound);
          check_near(mean.denominator, {each.counted}, 1e-6);
          const std::vector<double> slopes(each.losses.size(), 0.5 / each.counted);
          check_near(cross_entropy_backward(full({}, 0.5, dtype), x, target, mean.log_sums, mean.denominator, options),
                     reference(x, target, options, true, slopes).gradient, bound);

          if (smoothing != 0) continue;
          const NllLoss likelihood = nll_loss(x, target, options);
          const Reference plain = reference(x, target, options, false, slopes);
          check_near(likelihood.loss, {total(plain.losses) / plain.counted}, bound);
          check_near(nll_loss_backward(full({}, 0.5, dtype), sizes, target, likelihood.denominator, options),
                     plain.gradient, bound);
          options.reduction = Reduction::None;
          check_near(nll_loss(x, target, options).loss, plain.losses, bound);
          check_near(nll_loss_backward(grads, sizes, target, {}, options),
                     reference(x, target, options, false, grads.to_vector<double>()).gradient, bound);
        }
      }
    }
  }
}

TEST_CASE("no positions, no rows or both: losses and gradients without elements") {
  for (const DType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16}) {
    CAPTURE(name(dtype));
    for (const Shape& sizes : std::vector<Shape>{{2, 3, 0}, {0, 4}, {0, 3, 0}, {2, 3, 0, 5}}) {
      CAPTURE(to_string(sizes));
      const Tensor logits = empty(sizes, dtype);
      Shape positions = sizes;
      positions.erase(1);
      const Tensor target = empty(positions, kInt64);
      const ClassLossOptions options{Reduction::Sum};
      const CrossEntropy loss = cross_entropy(logits, target, options);
      CHECK(loss.loss.to_vector<double>() == std::vector<double>{0});
      const Tensor gradient =
          cross_entropy_backward(ones({}, dtype), logits, target, loss.log_sums, loss.denominator, options);
      CHECK(gradient.sizes() == sizes);
      CHECK(gradient.dtype() == dtype);
    }
  }
}

TEST_CASE("large logits keep their digits; infinities and NaN; nothing that counts") {
  // Far from 0, the log of the sum of exponentials has fewer digits than the differences between logits.
  const Tensor far = tensor(std::vector<float>{10'000, 10'001, 9'999.5F}, {1, 3});
  const Tensor one = tensor<int64_t>({0});
  const ClassLossOptions each{Reduction::None};
  const CrossEntropy found = cross_entropy(far, one, each);
  CHECK(found.loss.to_vector<double>()[0] ==
        doctest::Approx(std::log(1 + std::exp(1.0) + std::exp(-0.5))).epsilon(1e-6));
  const Tensor gradient = cross_entropy_backward(ones({1}), far, one, found.log_sums, {}, each);
  CHECK(gradient.to_vector<double>()[1] ==
        doctest::Approx(std::exp(1.0) / (1 + std::exp(1.0) + std::exp(-0.5))).epsilon(1e-6));

  const double inf = INFINITY;
  const auto loss = [&](std::vector<double> logits, int64_t target) {
    return cross_entropy(tensor(logits, {1, 3}), tensor<int64_t>({target}), each).loss.to_vector<double>()[0];
  };
  CHECK(loss({-inf, 0, 0}, 0) == inf);
  CHECK(loss({-inf, 0, 0}, 1) == doctest::Approx(std::log(2.0)));
  CHECK(std::isnan(loss({-inf, -inf, -inf}, 1)));
  CHECK(std::isnan(loss({inf, 0, 0}, 1)));
  CHECK(std::isnan(loss({NAN, 0, 0}, 1)));
  CHECK(loss({NAN, 0, 0}, -100) == 0);

  for (const Shape& sizes : std::vector<Shape>{{2, 3}, {2, 3, 4}}) {
    const Tensor x = random(sizes, 1);
    Shape positions = sizes;
    positions.erase(1);
    const Tensor ignored = full(positions, -100, kInt64);
    const CrossEntropy nothing = cross_entropy(x, ignored, {});
    CHECK(std::isnan(nothing.loss.to_vector<double>()[0]));
    const Tensor zero =
        cross_entropy_backward(ones({}, kFloat64), x, ignored, nothing.log_sums, nothing.denominator, {});
    CHECK(zero.to_vector<double>() == std::vector<double>(static_cast<size_t>(x.numel()), 0));
    CHECK(nll_loss_backward(ones({}, kFloat64), sizes, ignored, nothing.denominator, {}).to_vector<double>() ==
          zero.to_vector<double>());
  }
  CHECK(cross_entropy(zeros({0, 3}), zeros({0}, kInt64), {Reduction::Sum}).loss.to_vector<double>()[0] == 0);
  CHECK(std::isnan(nll_loss(zeros({0, 3}), zeros({0}, kInt64), {}).loss.to_vector<double>()[0]));
}

TEST_CASE("views; sums of half types; errors name positions, shapes and dtypes") {
  const Tensor x = random({5, 4}, 1);
  const Tensor turned = view::transpose(x, 0, 1);
  const Tensor target = classes({4}, 5, -1);
  CHECK(cross_entropy(turned, target, {Reduction::None, -1}).loss.to_vector<double>() ==
        cross_entropy(clone(turned), target, {Reduction::None, -1}).loss.to_vector<double>());
  const Tensor every_other = view::slice(full({6}, 2, kInt64), 0, 0, 5, 2);
  CHECK(nll_loss(view::slice(x, 0, 0, 3), every_other, {Reduction::Sum}).loss.to_vector<double>()[0] ==
        doctest::Approx(-total(view::select(view::slice(x, 0, 0, 3), 1, 2).to_vector<double>())));

  // The sum overflows float16, the mean does not.
  const Tensor far = cast(binary(full({3000, 2}, 50.0), tensor<float>({0, 1}), BinaryOp::Mul), kFloat16);
  CHECK(cross_entropy(far, zeros({3000}, kInt64), {}).loss.to_vector<double>()[0] == 50);

  const Tensor logits = random({3, 4}, 1);
  CHECK_THROWS_WITH_AS(cross_entropy(logits, tensor<int64_t>({0, 4, 0}), {}),
                       "cross_entropy: target 4 at position 1 is not a class 0..3", IndexError);
  CHECK_THROWS_WITH_AS(nll_loss(logits, tensor<int64_t>({0, -1, 0}), {}),
                       "nll_loss: target -1 at position 1 is not a class 0..3", IndexError);
  CHECK_THROWS_AS(cross_entropy(logits, tensor<int64_t>({0, 1}), {}), ShapeError);
  CHECK_THROWS_AS(cross_entropy(logits, zeros({3}), {}), DTypeError);
  CHECK_THROWS_AS(cross_entropy(zeros({}), zeros({}, kInt64), {}), ShapeError);
  CHECK_THROWS_AS(cross_entropy(zeros({3, 4}, kInt64), zeros({3}, kInt64), {}), DTypeError);
  const Tensor good = zeros({3}, kInt64);
  CHECK_THROWS_WITH_AS(cross_entropy(logits, good, {.weight = ones({3})}), doctest::Contains("each of the 4 classes"),
                       ShapeError);
  CHECK_THROWS_AS(nll_loss(logits, good, {.weight = ones({4}, kInt64)}), DTypeError);
  CHECK_THROWS_WITH_AS(cross_entropy(logits, good, {.label_smoothing = 1.5}), doctest::Contains("between 0.0 and 1.0"),
                       ValueError);
  CHECK_THROWS_AS(cross_entropy_backward(ones({}), logits, good, ones({3}, kFloat64), {}, {}), ShapeError);
  CHECK_THROWS_AS(nll_loss_backward(ones({2}), {3, 4}, good, {}, {}), ShapeError);
}

}  // namespace brigade::test::cross_entropy_test
