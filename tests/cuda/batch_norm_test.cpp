// Batch norm: CUDA kernels, compared with the CPU's; the separate parts, compared with the whole.
#include "on_device.h"

#include <brigade/kernels/normalization.h>

namespace brigade::test::batch_norm_test {
using namespace brigade::kernels;

namespace {

// For sums of `count` values: the device adds in another order.
double sum_bound(DType dtype, int64_t count) {
  return tolerance(dtype) * (dtype == kFloat64 || dtype == kFloat32 ? 8 + std::sqrt(static_cast<double>(count)) : 2);
}

// Channels with few and many values, few and many channels, areas of 1, short, odd, and of whole vectors.
const std::vector<Shape> kShapes{{2, 1},     {5, 3},       {2300, 3},    {70, 40},     {300, 2, 3},    {9, 5, 8},
                                 {3, 2, 49}, {2, 3, 8, 8}, {1, 1, 9001}, {3, 2, 4096}, {2, 2, 9, 1001}};

struct Statistics {
  Tensor mean, var;
};
Statistics statistics(int64_t channels, DType dtype) {
  return {numbers({channels}, dtype, 7), unary(numbers({channels}, dtype, 8), UnaryOp::Abs)};
}

using test::on_device;
Statistics on_device(const Statistics& s) { return {test::on_device(s.mean), test::on_device(s.var)}; }

}  // namespace

TEST_CASE("batch norm trains and evaluates as on the CPU") {
  for (const DType dtype : kFloatingDTypes) {
    CAPTURE(name(dtype));
    const DType parameters = dtype == kFloat16 ? kFloat16 : dtype == kFloat64 ? kFloat64 : kFloat32;
    for (const Shape& sizes : kShapes) {
      CAPTURE(to_string(sizes));
      const int64_t channels = sizes[1];
      const int64_t count = sizes.numel() / channels;
      const Tensor x = cast(binary_scalar(numbers(sizes, kFloat64), 2, BinaryOp::Add, false), dtype);
      const Tensor grad = numbers(sizes, dtype, 2);
      const bool affine = channels != 3;
      const Tensor weight = affine ? numbers({channels}, parameters, 3) : Tensor();
      const Tensor bias = affine ? numbers({channels}, parameters, 4) : Tensor();
      const Tensor weight_there = affine ? on_device(weight) : Tensor();
      const Tensor bias_there = affine ? on_device(bias) : Tensor();
      for (const bool training : {true, false}) {
        CAPTURE(training);
        const Statistics here = statistics(channels, parameters);
        const Statistics there = on_device(here);
        const BatchNorm expected = batch_norm(x, weight, bias, here.mean, here.var, training, 0.3, 1e-3);
        const BatchNorm found =
            batch_norm(on_device(x), weight_there, bias_there, there.mean, there.var, training, 0.3, 1e-3);
        const double bound = 4 * tolerance(dtype);
        CHECK(difference(found.y, expected.y) <= bound);
        CHECK(difference(found.mean, expected.mean) <= bound);
        CHECK(difference(found.invstd, expected.invstd) <= bound);
        CHECK(difference(there.mean, here.mean) <= 4 * tolerance(parameters));
        CHECK(difference(there.var, here.var) <= 4 * tolerance(parameters));
        const BatchNormGrads slopes = batch_norm_backward(grad, x, weight, expected.mean, expected.invstd, training);
        const BatchNormGrads got = batch_norm_backward(on_device(grad), on_device(x), weight_there,
                                                       on_device(expected.mean), on_device(expected.invstd), training);
        CHECK(difference(got.x, slopes.x) <= 4 * bound);
        CHECK(difference(got.weight, slopes.weight) <= sum_bound(dtype, count));
        CHECK(difference(got.bias, slopes.bias) <= sum_bound(dtype, count));
      }
    }
  }
}

TEST_CASE("in parts it is batch norm, bit for bit, and the same bits each time") {
  for (const DType dtype : kFloatingDTypes) {
    CAPTURE(name(dtype));
    for (const Shape& sizes : kShapes) {
      CAPTURE(to_string(sizes));
      const int64_t channels = sizes[1];
      const int64_t count = sizes.numel() / channels;
      const Tensor x = on_device(numbers(sizes, dtype, 1));
      const Tensor grad = on_device(numbers(sizes, dtype, 2));
      const Tensor weight = on_device(numbers({channels}, kFloat32, 3));
      const Tensor bias = on_device(numbers({channels}, kFloat32, 4));
      const Statistics first = on_device(statistics(channels, kFloat32));
      const Statistics second = on_device(statistics(channels, kFloat32));
      const BatchNorm whole = batch_norm(x, weight, bias, first.mean, first.var, true, 0.1, 1e-5);
      const BatchNorm parts =
          batch_norm_apply(x, weight, bias, second.mean, second.var, batch_norm_moments(x), count, 0.1, 1e-5);
      const auto equal = [](const Tensor& a, const Tensor& b) { return difference(a, on_cpu(b)) == 0; };
      CHECK(equal(parts.y, whole.y));
      CHECK(equal(parts.mean, whole.mean));
      CHECK(equal(parts.invstd, whole.invstd));
      CHECK(equal(second.mean, first.mean));
      CHECK(equal(second.var, first.var));
      const BatchNormGrads grads = batch_norm_backward(grad, x, weight, whole.mean, whole.invstd, true);
      const Tensor sums = batch_norm_gradient_sums(grad, x, parts.mean, parts.invstd);
      CHECK(equal(batch_norm_input_gradient(grad, x, weight, parts.mean, parts.invstd, sums, count), grads.x));
      CHECK(equal(cast(view::select(sums, 0, 0), kFloat32), grads.bias));
      CHECK(equal(cast(view::select(sums, 0, 1), kFloat32), grads.weight));
    }
  }
}

TEST_CASE("moments of batches are combined as on the CPU, those of one batch to the bit") {
  for (const int64_t channels : {int64_t{1}, int64_t{3}, int64_t{300}}) {
    CAPTURE(channels);
    const Tensor rows = numbers({4, 2 * channels + 1}, kFloat64, 7);
    for (int64_t r = 0; r < 4; ++r)
      fill(view::slice(view::select(rows, 0, r), 0, 2 * channels, 2 * channels + 1), r == 1 ? 0 : 2 + r);
    CHECK(difference(batch_norm_combine(on_device(rows)), batch_norm_combine(rows)) <= 1e-14);
    const Tensor first = view::slice(rows, 0, 0, 2);
    CHECK(difference(batch_norm_combine(on_device(first)), batch_norm_combine(first)) == 0);
  }
}

TEST_CASE("moments and sums are the CPU's; a mean far from zero costs no digits") {
  for (const DType dtype : {kFloat64, kFloat32}) {
    CAPTURE(name(dtype));
    for (const double mean : {0.0, 1000.0}) {
      CAPTURE(mean);
      for (const Shape& sizes : kShapes) {
        CAPTURE(to_string(sizes));
        const Tensor x = cast(binary_scalar(numbers(sizes, kFloat64), mean, BinaryOp::Add, false), dtype);
        const Tensor expected = batch_norm_moments(x);
        const Tensor found = batch_norm_moments(on_device(x));
        const double bound = dtype == kFloat64 ? 1e-13 : 1e-6;
        CHECK(difference(view::select(found, 0, 0), view::select(expected, 0, 0)) <=
              bound / 4);  // less than a rounding of x
        CHECK(difference(view::select(found, 0, 1), view::select(expected, 0, 1)) <= bound);
        const Tensor grad = numbers(sizes, dtype, 2);
        const BatchNorm norm = batch_norm(x, {}, {}, {}, {}, true, 0.1, 1e-5);
        CHECK(difference(
                  batch_norm_gradient_sums(on_device(grad), on_device(x), on_device(norm.mean), on_device(norm.invstd)),
                  batch_norm_gradient_sums(grad, x, norm.mean, norm.invstd)) <=
              sum_bound(dtype, sizes.numel() / sizes[1]));
      }
    }
  }
}

TEST_CASE("views: not dense, and starting where no vector may") {
  for (const DType dtype : kFloatingDTypes) {
    CAPTURE(name(dtype));
    const Tensor wide = numbers({16, 2, 6}, dtype);
    const Tensor flat = numbers({1 + 3 * 2 * 16}, dtype);
    const auto late = [](const Tensor& x) { return view::as_strided(x, {3, 2, 16}, {32, 16, 1}, 1); };
    const auto turned = [](const Tensor& x) { return view::transpose(x, 0, 2); };
    const auto compare = [&](const Tensor& here, const Tensor& there) {
      const BatchNorm expected = batch_norm(here, {}, {}, {}, {}, true, 0.1, 1e-5);
      const BatchNorm found = batch_norm(there, {}, {}, {}, {}, true, 0.1, 1e-5);
      CHECK(difference(found.y, expected.y) <= 4 * tolerance(dtype));
      const BatchNormGrads slopes = batch_norm_backward(here, here, {}, expected.mean, expected.invstd, true);
      const BatchNormGrads got =
          batch_norm_backward(there, there, {}, on_device(expected.mean), on_device(expected.invstd), true);
      CHECK(difference(got.x, slopes.x) <= 16 * tolerance(dtype));
      CHECK(difference(got.weight, slopes.weight) <= 16 * tolerance(dtype));
    };
    compare(turned(wide), turned(on_device(wide)));
    compare(late(flat), late(on_device(flat)));
  }
}

TEST_CASE("an empty batch has moments and sums of zero; what does not fit is refused") {
  const Tensor none = on_device(zeros({0, 3}));
  const Tensor three = on_device(ones({3}));
  CHECK(on_cpu(batch_norm_moments(none)).to_vector<double>() == std::vector<double>(6, 0));
  CHECK(on_cpu(batch_norm_gradient_sums(none, none, three, three)).to_vector<double>() == std::vector<double>(6, 0));
  CHECK(on_cpu(batch_norm_moments(on_device(zeros({2, 1, 0})))).to_vector<double>() == std::vector<double>(2, 0));
  const Tensor moments = on_device(ones({2, 3}, kFloat64));
  CHECK(batch_norm_apply(none, {}, {}, {}, {}, moments, 5, 0.1, 1e-5).y.sizes() == Shape{0, 3});
  CHECK(batch_norm_input_gradient(none, none, {}, three, three, moments, 5).sizes() == Shape{0, 3});
  CHECK(batch_norm_moments(on_device(zeros({4, 0, 2}))).sizes() == Shape{2, 0});

  const Tensor x = on_device(ones({2, 3, 2}));
  CHECK_THROWS_WITH_AS(batch_norm(on_device(ones({1, 3})), {}, {}, {}, {}, true, 0.1, 0),
                       doctest::Contains("Expected more than 1 value per channel when training"), ValueError);
  CHECK_THROWS_AS(batch_norm(x, {}, {}, {}, {}, false, 0.1, 0), ValueError);
  CHECK_THROWS_WITH_AS(batch_norm(x, on_device(ones({2})), {}, {}, {}, true, 0.1, 0),
                       doctest::Contains("weight must be [3]"), ShapeError);
  CHECK_THROWS_WITH_AS(batch_norm(x, ones({3}), {}, {}, {}, true, 0.1, 0),
                       doctest::Contains("weight is on cpu, the input on cuda:0"), DeviceError);
  CHECK_THROWS_AS(batch_norm(x, on_device(ones({3}, kInt64)), {}, {}, {}, true, 0.1, 0), DTypeError);
  CHECK_THROWS_AS(batch_norm(on_device(ones({2, 3}, kInt64)), {}, {}, {}, {}, true, 0.1, 0), DTypeError);
  CHECK_THROWS_AS(batch_norm(three, {}, {}, {}, {}, true, 0.1, 0), ShapeError);
  CHECK_THROWS_AS(batch_norm_apply(x, {}, {}, {}, {}, three, 5, 0.1, 0), ShapeError);
  CHECK_THROWS_AS(batch_norm_backward(three, x, {}, three, three, true), ShapeError);
}

}  // namespace brigade::test::batch_norm_test
