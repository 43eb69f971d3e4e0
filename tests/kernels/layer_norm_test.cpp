// Layer norm and RMS norm against plain loops in double.
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/normalization.h>

#include <near.h>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>

namespace brigade::test::layer_norm_test {
using test::check_near;
using namespace brigade::kernels;

namespace {

Tensor random(const Shape& sizes, uint64_t seed, DType dtype = kFloat64) {
  RandomGenerator generator(seed);
  return cast(randn(sizes, kFloat64, &generator), dtype);
}

struct Reference {
  std::vector<double> y, mean, rstd, dx, dweight, dbias;
};
// [rows, n], computed from the definitions.
Reference reference(const std::vector<double>& x, const std::vector<double>& grad, const std::vector<double>& weight,
                    const std::vector<double>& bias, double eps, bool centered) {
  const size_t n = weight.size();
  Reference r;
  r.dweight.resize(n);
  r.dbias.resize(n);
  for (size_t begin = 0; begin < x.size(); begin += n) {
    double mean = 0, squares = 0, slope = 0, dot = 0;
    for (size_t i = 0; i < n && centered; ++i)
      mean += x[begin + i] / static_cast<double>(n);
    for (size_t i = 0; i < n; ++i)
      squares += (x[begin + i] - mean) * (x[begin + i] - mean) / static_cast<double>(n);
    const double rstd = 1 / std::sqrt(squares + eps);
    for (size_t i = 0; i < n; ++i) {
      const double h = (x[begin + i] - mean) * rstd;
      r.y.push_back(h * weight[i] + bias[i]);
      r.dweight[i] += grad[begin + i] * h;
      r.dbias[i] += grad[begin + i];
      slope += centered ? grad[begin + i] * weight[i] / static_cast<double>(n) : 0;
      dot += grad[begin + i] * weight[i] * h / static_cast<double>(n);
    }
    for (size_t i = 0; i < n; ++i)
      r.dx.push_back(rstd * (grad[begin + i] * weight[i] - slope - (x[begin + i] - mean) * rstd * dot));
    r.mean.push_back(mean);
    r.rstd.push_back(rstd);
  }
  return r;
}

}  // namespace

TEST_CASE("layer norm and RMS norm and their gradients, for every dtype, with parameters of the same and of another") {
  for (const auto& [dtype, parameters, bound] :
       std::vector<std::tuple<DType, DType, double>>{{kFloat64, kFloat64, 1e-12},
                                                     {kFloat32, kFloat32, 1e-5},
                                                     {kFloat32, kBFloat16, 2e-2},
                                                     {kFloat16, kFloat16, 1e-2},
                                                     {kBFloat16, kBFloat16, 5e-2},
                                                     {kBFloat16, kFloat32, 5e-2}}) {
    CAPTURE(name(dtype));
    CAPTURE(name(parameters));
    for (const auto& [sizes, shape] :
         std::vector<std::pair<Shape, Shape>>{{{4, 7}, {7}}, {{300, 3}, {3}}, {{2, 3, 4, 5}, {4, 5}}, {{6}, {6}}}) {
      CAPTURE(to_string(sizes));
      const Tensor x = random(sizes, 1, dtype), grad = random(sizes, 2, dtype);
      const Tensor weight = random(shape, 3, parameters), bias = random(shape, 4, parameters);
      const LayerNormBackwardOptions options{shape, true, {true, parameters}, {true, parameters}};
      const auto values = [](const Tensor& t) { return t.to_vector<double>(); };

      const Reference r = reference(values(x), values(grad), values(weight), values(bias), 1e-3, true);
      const LayerNorm norm = layer_norm(x, shape, weight, bias, 1e-3);
      CHECK(norm.mean.dtype() == (dtype == kFloat64 ? kFloat64 : kFloat32));
      CHECK(norm.mean.dim() == x.dim() - shape.size());
      check_near(norm.y, r.y, bound);
      check_near(norm.mean, r.mean, 1e-6);
      check_near(norm.rstd, r.rstd, 1e-5);
      const LayerNormGrads grads = layer_norm_backward(grad, x, weight, norm.mean, norm.rstd, options);
      check_near(grads.x, r.dx, bound);
      check_near(grads.weight, r.dweight, bound);
      check_near(grads.bias, r.dbias, bound);
      CHECK(grads.weight.dtype() == parameters);
      CHECK(grads.weight.sizes() == shape);

      const std::vector<double> none(static_cast<size_t>(shape.numel()), 0);
      const Reference s = reference(values(x), values(grad), values(weight), none, 1e-3, false);
      const RmsNorm rms = rms_norm(x, shape, weight, 1e-3);
      check_near(rms.y, s.y, bound);
      check_near(rms.rstd, s.rstd, 1e-5);
      const LayerNormGrads rms_grads =
          rms_norm_backward(grad, x, weight, rms.rstd, {shape, true, {true, parameters}, {}});
      check_near(rms_grads.x, s.dx, bound);
      check_near(rms_grads.weight, s.dweight, bound);
      CHECK(!rms_grads.bias.defined());
    }
  }
}

TEST_CASE("a gradient is written to its place or added to what is there; what is not wanted is not computed") {
  const Tensor x = random({5, 3}, 1), grad = random({5, 3}, 2), weight = random({3}, 3);
  const LayerNorm norm = layer_norm(x, {3}, weight, {}, 1e-5);
  const LayerNormGrads fresh =
      layer_norm_backward(grad, x, weight, norm.mean, norm.rstd, {{3}, false, {true, kFloat64}, {true, kFloat64}});
  CHECK(!fresh.x.defined());
  const Tensor place = ones({3}, kFloat64);
  for (const double expected : {1.0, 2.0}) {
    const LayerNormGrads added =
        layer_norm_backward(grad, x, weight, norm.mean, norm.rstd, {{3}, false, {true, kFloat64, place, true}, {}});
    CHECK(added.weight.is_same(place));
    CHECK(!added.bias.defined());
    for (int64_t i = 0; i < 3; ++i) {
      CHECK(place.to_vector<double>()[static_cast<size_t>(i)] ==
            doctest::Approx(1 + expected * fresh.weight.to_vector<double>()[static_cast<size_t>(i)]));
    }
  }
  layer_norm_backward(grad, x, weight, norm.mean, norm.rstd, {{3}, false, {true, kFloat64, place}, {}});
  CHECK(place.to_vector<double>() == fresh.weight.to_vector<double>());
}

TEST_CASE("views and empty batches; errors name shapes and dtypes") {
  const Tensor x = random({4, 6}, 1);
  const Tensor turned = view::transpose(x, 0, 1);
  CHECK(layer_norm(turned, {4}, {}, {}, 1e-5).y.to_vector<double>() ==
        layer_norm(clone(turned), {4}, {}, {}, 1e-5).y.to_vector<double>());
  const Tensor none = zeros({0, 3});
  const RmsNorm norm = rms_norm(none, {3}, {}, 1e-5);
  CHECK(norm.y.sizes() == Shape{0, 3});
  CHECK(rms_norm_backward(none, none, {}, norm.rstd, {{3}, true, {true, kFloat32}, {}}).weight.to_vector<double>() ==
        std::vector<double>{0, 0, 0});

  CHECK_THROWS_WITH_AS(layer_norm(x, {4}, {}, {}, 1e-5), doctest::Contains("normalized_shape [4]"), ShapeError);
  CHECK_THROWS_WITH_AS(layer_norm(x, {4}, {}, {}, 1e-5), doctest::Contains("got [4, 6]"), ShapeError);
  CHECK_THROWS_AS(layer_norm(x, {}, {}, {}, 1e-5), ShapeError);
  CHECK_THROWS_AS(layer_norm(x, {1, 4, 6}, {}, {}, 1e-5), ShapeError);
  CHECK_THROWS_AS(layer_norm(zeros({2, 0}), {0}, {}, {}, 1e-5), ShapeError);
  CHECK_THROWS_WITH_AS(layer_norm(x, {6}, ones({5}), {}, 1e-5), doctest::Contains("weight must be [6]"), ShapeError);
  CHECK_THROWS_WITH_AS(layer_norm(x, {6}, {}, ones({6}, kInt64), 1e-5), doctest::Contains("bias must have a floating"),
                       DTypeError);
  CHECK_THROWS_WITH_AS(rms_norm(ones({2, 3}, kInt64), {3}, {}, 1e-5), doctest::Contains("got int64"), DTypeError);
  CHECK_THROWS_AS(rms_norm_backward(x, x, {}, ones({5}, kFloat64), {{6}}), ShapeError);
  CHECK_THROWS_AS(rms_norm_backward(random({6, 4}, 1), x, {}, ones({4}, kFloat64), {{6}}), ShapeError);
}

TEST_CASE("a NaN of any payload in a weight makes NaNs of its column in every dtype, forward and backward") {
  const Tensor weight = ones({40});
  static_cast<uint32_t*>(weight.raw_data())[3] = 0x7fffffff;
  for (const DType dtype : {kFloat32, kFloat16, kBFloat16}) {
    CAPTURE(name(dtype));
    const Tensor x = random({2, 40}, 1, dtype), grad = random({2, 40}, 2, dtype);
    const LayerNorm norm = layer_norm(x, {40}, weight, Tensor(), 1e-5);
    const auto y = norm.y.to_vector<float>();
    for (size_t i = 0; i < y.size(); ++i)
      CHECK(std::isnan(y[i]) == (i % 40 == 3));
    // Each element of the gradient depends on the whole row.
    const LayerNormGrads slopes =
        layer_norm_backward(grad, x, weight, norm.mean, norm.rstd, {.normalized_shape = {40}});
    for (const float slope : slopes.x.to_vector<float>())
      CHECK(std::isnan(slope));
  }
}

}  // namespace brigade::test::layer_norm_test
