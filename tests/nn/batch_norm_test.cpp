#include <nn/models.h>

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

namespace brigade::test::batch_norm_test {
namespace {

struct Statistics {
  double mean = 0, biased = 0, unbiased = 0;
};
// Statistics of channel c of x [N, C, L].
Statistics statistics_of(const Tensor& x, int64_t c) {
  std::vector<double> values;
  for (int64_t n = 0; n < x.size(0); ++n) {
    for (const double v : doubles(x.select(0, n).select(0, c)))
      values.push_back(v);
  }
  Statistics result;
  const auto count = static_cast<double>(values.size());
  result.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double v : values)
    squares += (v - result.mean) * (v - result.mean);
  result.biased = squares / count;
  result.unbiased = squares / (count - 1);
  return result;
}

Tensor batch(uint64_t seed) {
  RandomGenerator generator(seed);
  return randn({4, 2, 3}, kFloat64, &generator) * 3.0 + 1.0;
}

}  // namespace

TEST_CASE("training normalises by the batch and moves the running statistics; evaluation uses them") {
  for (const bool cumulative : {false, true}) {
    CAPTURE(cumulative);
    nn::BatchNorm1d norm(2, {.momentum = cumulative ? std::optional<double>() : 0.25, .dtype = kFloat64});
    {
      const NoGradGuard no_grad;
      norm->weight.copy_(tensor<double>({2, 3}));
      norm->bias.copy_(tensor<double>({-1, 1}));
    }
    std::vector<double> mean{0, 0}, variance{1, 1};
    for (int step = 0; step < 3; ++step) {
      const Tensor x = batch(static_cast<uint64_t>(step));
      const Tensor y = norm(x);
      const double momentum = cumulative ? 1.0 / (step + 1) : 0.25;
      for (int64_t c = 0; c < 2; ++c) {
        const auto i = static_cast<size_t>(c);
        const Statistics s = statistics_of(x, c);
        mean[i] = (1 - momentum) * mean[i] + momentum * s.mean;
        variance[i] = (1 - momentum) * variance[i] + momentum * s.unbiased;
        const double expected =
            (doubles(x.select(0, 1).select(0, c))[2] - s.mean) / std::sqrt(s.biased + 1e-5) * doubles(norm->weight)[i] +
            doubles(norm->bias)[i];
        CHECK(doubles(y.select(0, 1).select(0, c))[2] == doctest::Approx(expected).epsilon(1e-12));
        CHECK(doubles(norm->running_mean)[i] == doctest::Approx(mean[i]).epsilon(1e-12));
        CHECK(doubles(norm->running_var)[i] == doctest::Approx(variance[i]).epsilon(1e-12));
      }
    }
    CHECK(norm->num_batches_tracked.item<int64_t>() == 3);
    norm->eval();
    const Tensor x = batch(9);
    const double expected = (doubles(x)[0] - mean[0]) / std::sqrt(variance[0] + 1e-5) * 2 - 1;
    CHECK(doubles(norm(x))[0] == doctest::Approx(expected).epsilon(1e-12));
    CHECK(norm->num_batches_tracked.item<int64_t>() == 3);
    CHECK(doubles(norm->running_mean)[0] == doctest::Approx(mean[0]).epsilon(1e-12));
  }
}

TEST_CASE("without running statistics evaluation uses the batch's; without affine there are no parameters") {
  nn::BatchNorm2d norm(2, {.affine = false, .track_running_stats = false});
  CHECK(norm->parameters().empty());
  CHECK(norm->buffers().empty());
  norm->eval();
  CHECK(norm(ones({2, 2, 1, 1}) * 5.0).sum().item() == 0);
}

TEST_CASE("a training batch of no samples gives none, moves no statistics, and leaves gradients of 0") {
  for (const Shape& sizes : {Shape{0, 2, 3, 3}, Shape{3, 2, 0, 3}}) {
    nn::BatchNorm2d norm(2);
    const Tensor x = ones(sizes).requires_grad_();
    const Tensor y = norm(x);
    CHECK(y.sizes() == sizes);
    y.sum().backward();
    CHECK(x.grad().sizes() == sizes);
    CHECK(floats(norm->weight.grad()) == std::vector<float>{0, 0});
    CHECK(floats(norm->bias.grad()) == std::vector<float>{0, 0});
    CHECK(floats(norm->running_mean) == std::vector<float>{0, 0});
    CHECK(floats(norm->running_var) == std::vector<float>{1, 1});
    CHECK(norm->num_batches_tracked.item<int64_t>() == 1);
  }
  for (const Shape& sizes : {Shape{0, 2}, Shape{0, 2, 5}}) {
    nn::BatchNorm1d norm(2);
    CHECK(norm(ones(sizes)).sizes() == sizes);
    CHECK(floats(norm->running_var) == std::vector<float>{1, 1});
  }
}

TEST_CASE("a batch that is refused does not count") {
  nn::BatchNorm2d norm(2);
  CHECK_THROWS_WITH_AS(norm(ones({1, 2, 1, 1})), doctest::Contains("Expected more than 1 value per channel"),
                       ValueError);
  CHECK_THROWS_WITH_AS(norm(ones({2, 2})), doctest::Contains("expected 4D input (got 2D input [2, 2])"), ShapeError);
  CHECK_THROWS_AS(norm(ones({2, 3, 1, 1})), ShapeError);
  CHECK(norm->num_batches_tracked.item<int64_t>() == 0);
  CHECK(floats(norm->running_mean) == std::vector<float>{0, 0});
  CHECK_THROWS_WITH_AS(nn::BatchNorm1d(2)(ones({2, 2, 1, 1})), doctest::Contains("expected 2D or 3D input"),
                       ShapeError);
  CHECK_THROWS_AS(nn::BatchNorm2d(0), ValueError);
}

TEST_CASE("parameters and buffers have PyTorch's names, order and dtypes") {
  nn::BatchNorm2d norm(2);
  CHECK(names_of(norm->state_dict()) ==
        std::vector<std::string>{"weight", "bias", "running_mean", "running_var", "num_batches_tracked"});
  norm->to(kFloat64);
  CHECK(norm->running_var.dtype() == kFloat64);
  CHECK(norm->num_batches_tracked.dtype() == kInt64);
  CHECK(norm(ones({2, 2, 2, 2}, kFloat64)).dtype() == kFloat64);
}

}  // namespace brigade::test::batch_norm_test
