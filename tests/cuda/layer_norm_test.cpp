// Layer norm and RMS norm: CUDA kernels, compared with the CPU's.
#include "on_device.h"

#include <brigade/kernels/normalization.h>

namespace brigade::test::layer_norm_test {
using namespace brigade::kernels;

namespace {

// The device computes statistics in the compute type of x, the CPU in double.
double bound(DType dtype) { return (dtype == kFloat64 || dtype == kFloat32 ? 8 : 2) * tolerance(dtype); }

constexpr double kEps = 1e-2;  // keeps the scale of a one-element row small

struct Row {
  Shape sizes;
  int dims = 1;  // length of normalized_shape
};
// Rows shorter and longer than a warp and a block hold, odd and whole vectors, several dimensions, one row, many rows.
const std::vector<Row> kRows{{{5, 1}},    {{3, 7}},    {{9, 32}},    {{2, 3, 64}},   {{4, 6, 10}, 2},
                             {{3, 500}},  {{2, 1024}}, {{2, 2049}},  {{1, 5000}},    {{1, 16400}},
                             {{301, 40}}, {{700, 3}},  {{129, 264}}, {{2, 3, 4}, 3}, {{5, 2, 1}, 1}};

Shape last_dims(const Shape& sizes, int dims) {
  Shape shape;
  for (int d = sizes.size() - dims; d < sizes.size(); ++d)
    shape.push_back(sizes[d]);
  return shape;
}

Tensor there(const Tensor& x) { return x.defined() ? on_device(x) : x; }

void check_close(const Tensor& found, const Tensor& expected, double allowed) {
  REQUIRE(found.defined() == expected.defined());
  if (expected.defined()) CHECK(difference(found, expected) <= allowed);
}

}  // namespace

TEST_CASE("a row of equal numbers far from zero is normalised to zeros") {
  for (const int64_t width : {7, 100, 3000}) {
    CAPTURE(width);
    const Tensor x = on_device(full({3, width}, 12345.678));
    const Tensor y = on_cpu(layer_norm(x, {width}, {}, {}, 1e-5).y);
    CHECK(difference(y, zeros({3, width})) == 0);
  }
}

TEST_CASE("layer norm and RMS norm, forward and backward") {
  for (const DType dtype : kFloatingDTypes) {
    CAPTURE(name(dtype));
    for (const Row& row : kRows) {
      CAPTURE(to_string(row.sizes));
      const Shape shape = last_dims(row.sizes, row.dims);
      const Tensor x = cast(binary_scalar(numbers(row.sizes, kFloat64), 1, BinaryOp::Add, false), dtype);
      const Tensor grad = numbers(row.sizes, dtype, 2);
      const int64_t rows = row.sizes.numel() / shape.numel();
      const double sums = bound(dtype) * std::sqrt(static_cast<double>(rows));
      // Parameters of the same dtype, of another dtype, or none.
      for (const int kind : {0, 1, 2}) {
        CAPTURE(kind);
        const DType parameters = kind == 0 ? dtype : dtype == kBFloat16 ? kFloat32 : kBFloat16;
        const Tensor weight = kind == 2 ? Tensor() : numbers(shape, parameters, 3);
        const Tensor bias = kind == 2 ? Tensor() : numbers(shape, parameters, 4);
        const double digits = std::max(bound(dtype), kind == 1 ? 2 * tolerance(parameters) : 0);
        LayerNormBackwardOptions options{shape, true, {kind != 2, parameters}, {kind == 0, parameters}};

        const LayerNorm expected = layer_norm(x, shape, weight, bias, kEps);
        const LayerNorm found = layer_norm(on_device(x), shape, there(weight), there(bias), kEps);
        check_close(found.y, expected.y, 2 * bound(dtype));
        check_close(found.mean, expected.mean, bound(dtype));
        check_close(found.rstd, expected.rstd, bound(dtype));
        const LayerNormGrads slopes = layer_norm_backward(grad, x, weight, expected.mean, expected.rstd, options);
        const LayerNormGrads got = layer_norm_backward(on_device(grad), on_device(x), there(weight),
                                                       there(expected.mean), there(expected.rstd), options);
        check_close(got.x, slopes.x, 4 * bound(dtype));
        check_close(got.weight, slopes.weight, std::max(sums, digits));
        check_close(got.bias, slopes.bias, std::max(sums, digits));

        options.bias.wanted = false;
        const RmsNorm plain = rms_norm(x, shape, weight, kEps);
        const RmsNorm plain_found = rms_norm(on_device(x), shape, there(weight), kEps);
        check_close(plain_found.y, plain.y, 2 * bound(dtype));
        check_close(plain_found.rstd, plain.rstd, bound(dtype));
        const LayerNormGrads plain_slopes = rms_norm_backward(grad, x, weight, plain.rstd, options);
        const LayerNormGrads plain_got =
            rms_norm_backward(on_device(grad), on_device(x), there(weight), there(plain.rstd), options);
        check_close(plain_got.x, plain_slopes.x, 4 * bound(dtype));
        check_close(plain_got.weight, plain_slopes.weight, std::max(sums, digits));
      }
    }
  }
}

TEST_CASE("gradients of parameters go where they belong and add to what is there; the same bits each time") {
  for (const DType dtype : {kFloat32, kBFloat16}) {
    CAPTURE(name(dtype));
    const Tensor x = on_device(numbers({300, 24}, dtype, 1));
    const Tensor grad = on_device(numbers({300, 24}, dtype, 2));
    const Tensor weight = on_device(numbers({24}, dtype, 3));
    const LayerNorm norm = layer_norm(x, {24}, weight, {}, 1e-5);
    const LayerNormGrads fresh =
        layer_norm_backward(grad, x, weight, norm.mean, norm.rstd, {{24}, false, {true, dtype}, {true, dtype}});
    CHECK(!fresh.x.defined());
    const Tensor start = numbers({24}, dtype, 5);
    const Tensor place = on_device(start);
    for (int repeat = 0; repeat < 3; ++repeat) {
      copy(place, on_device(start));
      const LayerNormGrads added = layer_norm_backward(grad, x, weight, norm.mean, norm.rstd,
                                                       {{24}, false, {true, dtype, place, true}, {true, dtype}});
      CHECK(added.weight.is_same(place));
      CHECK(difference(place, binary(on_cpu(fresh.weight), start, BinaryOp::Add)) <= 2 * tolerance(dtype));
      CHECK(difference(added.bias, on_cpu(fresh.bias)) == 0);
    }
    const LayerNormGrads written =
        layer_norm_backward(grad, x, weight, norm.mean, norm.rstd, {{24}, false, {true, dtype, place, false}, {}});
    CHECK(difference(written.weight, on_cpu(fresh.weight)) == 0);
    CHECK(!written.bias.defined());
  }
}

TEST_CASE("rows that start where no vector may, rows that are not dense, and none at all") {
  for (const DType dtype : kFloatingDTypes) {
    CAPTURE(name(dtype));
    const Tensor flat = numbers({1 + 5 * 64}, dtype, 1);
    const Tensor wide = numbers({64, 5}, dtype, 2);
    const auto late = [](const Tensor& x) { return view::as_strided(x, {5, 64}, {64, 1}, 1); };
    const auto turned = [](const Tensor& x) { return view::transpose(x, 0, 1); };
    const Tensor weights = numbers({65}, dtype, 3);
    const auto run = [&](const Tensor& x, const Tensor& w) {
      const LayerNorm norm = layer_norm(x, {64}, w, w, 1e-5);
      return layer_norm_backward(norm.y, x, w, norm.mean, norm.rstd, {{64}, true, {true, dtype}, {true, dtype}});
    };
    const auto both = [&](const Tensor& here, const Tensor& far, int64_t skipped) {
      const Tensor w = view::slice(weights, 0, skipped, 64 + skipped);
      const LayerNormGrads expected = run(here, w);
      const LayerNormGrads found = run(far, view::slice(on_device(weights), 0, skipped, 64 + skipped));
      const double allowed = 16 * bound(dtype);  // includes the error of y
      check_close(found.x, expected.x, allowed);
      check_close(found.weight, expected.weight, allowed);
      check_close(found.bias, expected.bias, allowed);
    };
    both(late(flat), late(on_device(flat)), 0);
    both(turned(wide), turned(on_device(wide)), 0);
    both(turned(wide), turned(on_device(wide)), 1);
  }
  const Tensor none = on_device(zeros({0, 8}));
  const LayerNorm norm = layer_norm(none, {8}, {}, {}, 1e-5);
  CHECK(norm.y.sizes() == Shape{0, 8});
  CHECK(norm.mean.sizes() == Shape{0});
  const LayerNormGrads grads =
      layer_norm_backward(none, none, {}, norm.mean, norm.rstd, {{8}, true, {true, kFloat32}, {true, kFloat32}});
  CHECK(difference(grads.weight, zeros({8})) == 0);
  CHECK(difference(grads.bias, zeros({8})) == 0);
}

TEST_CASE("what does not fit is refused on the device as well") {
  const Tensor x = on_device(ones({2, 4}));
  CHECK_THROWS_WITH_AS(layer_norm(x, {3}, {}, {}, 1e-5), doctest::Contains("normalized_shape [3]"), ShapeError);
  CHECK_THROWS_WITH_AS(layer_norm(x, {4}, ones({4}), {}, 1e-5),
                       doctest::Contains("weight is on cpu, the input on cuda:0"), DeviceError);
  CHECK_THROWS_AS(rms_norm(x, {4}, on_device(ones({2})), 1e-5), ShapeError);
  CHECK_THROWS_AS(rms_norm(on_device(ones({2, 4}, kInt64)), {4}, {}, 1e-5), DTypeError);
  CHECK_THROWS_AS(rms_norm_backward(x, x, {}, on_device(ones({3})), {{4}}), ShapeError);
}

}  // namespace brigade::test::layer_norm_test
