// Group norm against plain loops in double.
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/normalization.h>

#include <near.h>

#include <doctest/doctest.h>

#include <cmath>
#include <tuple>

namespace brigade::test::group_norm_test {
using test::check_near;
using namespace brigade::kernels;

namespace {

Tensor random(const Shape& sizes, uint64_t seed, DType dtype = kFloat64) {
  RandomGenerator generator(seed);
  return cast(binary_scalar(randn(sizes, kFloat64, &generator), 0.5, BinaryOp::Add, false), dtype);
}

struct Reference {
  std::vector<double> y, mean, rstd, dx, dweight, dbias;
};
// Computed from the definitions.
Reference reference(const Tensor& x_, const Tensor& grad_, int64_t groups, const std::vector<double>& weight,
                    const std::vector<double>& bias, double eps) {
  const std::vector<double> x = x_.to_vector<double>(), grad = grad_.to_vector<double>();
  const auto channels = static_cast<int64_t>(weight.size());
  const int64_t each = channels / groups, area = x_.numel() / (x_.size(0) * channels), n = each * area;
  Reference r;
  r.y.resize(x.size());
  r.dx.resize(x.size());
  r.dweight.resize(weight.size());
  r.dbias.resize(weight.size());
  for (int64_t row = 0; row < x_.size(0) * groups; ++row) {
    const auto at = [&](int64_t i) { return static_cast<size_t>(row * n + i); };
    const auto channel = [&](int64_t i) { return static_cast<size_t>(row % groups * each + i / area); };
    double mean = 0, squares = 0, slope = 0, dot = 0;
    for (int64_t i = 0; i < n; ++i)
      mean += x[at(i)] / static_cast<double>(n);
    for (int64_t i = 0; i < n; ++i)
      squares += (x[at(i)] - mean) * (x[at(i)] - mean) / static_cast<double>(n);
    const double rstd = 1 / std::sqrt(squares + eps);
    for (int64_t i = 0; i < n; ++i) {
      const double h = (x[at(i)] - mean) * rstd;
      r.y[at(i)] = h * weight[channel(i)] + bias[channel(i)];
      r.dweight[channel(i)] += grad[at(i)] * h;
      r.dbias[channel(i)] += grad[at(i)];
      slope += grad[at(i)] * weight[channel(i)] / static_cast<double>(n);
      dot += grad[at(i)] * weight[channel(i)] * h / static_cast<double>(n);
    }
    for (int64_t i = 0; i < n; ++i)
      r.dx[at(i)] = rstd * (grad[at(i)] * weight[channel(i)] - slope - (x[at(i)] - mean) * rstd * dot);
    r.mean.push_back(mean);
    r.rstd.push_back(rstd);
  }
  return r;
}

}  // namespace

TEST_CASE("group norm and its gradients, for every dtype, with parameters of the same and of another, and without") {
  for (const auto& [dtype, parameters, bound] :
       std::vector<std::tuple<DType, DType, double>>{{kFloat64, kFloat64, 1e-12},
                                                     {kFloat32, kFloat32, 1e-5},
                                                     {kFloat32, kBFloat16, 2e-2},
                                                     {kFloat16, kFloat16, 1e-2},
                                                     {kBFloat16, kBFloat16, 5e-2},
                                                     {kBFloat16, kFloat32, 5e-2}}) {
    CAPTURE(std::string(name(dtype)));
    CAPTURE(std::string(name(parameters)));
    for (const auto& [sizes, groups] : std::vector<std::pair<Shape, int64_t>>{
             {{4, 6}, 2}, {{2, 6, 5}, 3}, {{3, 4, 7, 9}, 4}, {{2, 4, 2, 3, 2}, 1}, {{1, 2, 70, 70}, 2}}) {
      CAPTURE(to_string(sizes));
      const Tensor x = random(sizes, 1, dtype), grad = random(sizes, 2, dtype);
      const Shape channels{sizes[1]};
      const Tensor weight = random(channels, 3, parameters), bias = random(channels, 4, parameters);
      const Reference r = reference(x, grad, groups, weight.to_vector<double>(), bias.to_vector<double>(), 1e-3);
      const GroupNorm norm = group_norm(x, groups, weight, bias, 1e-3);
      CHECK(norm.mean.sizes() == Shape{sizes[0], groups});
      CHECK(norm.mean.dtype() == (dtype == kFloat64 ? kFloat64 : kFloat32));
      check_near(norm.y, r.y, bound);
      check_near(norm.mean, r.mean, 1e-6);
      check_near(norm.rstd, r.rstd, 1e-5);
      const GroupNormBackwardOptions options{groups, true, {true, parameters}, {true, parameters}};
      const GroupNormGrads grads = group_norm_backward(grad, x, weight, norm.mean, norm.rstd, options);
      check_near(grads.x, r.dx, bound);
      check_near(grads.weight, r.dweight, 4 * bound);
      check_near(grads.bias, r.dbias, 4 * bound);
      CHECK(grads.weight.dtype() == parameters);

      const std::vector<double> ones(static_cast<size_t>(sizes[1]), 1), none(static_cast<size_t>(sizes[1]), 0);
      const Reference plain = reference(x, grad, groups, ones, none, 1e-3);
      check_near(group_norm(x, groups, {}, {}, 1e-3).y, plain.y, bound);
      const GroupNormGrads input = group_norm_backward(grad, x, {}, norm.mean, norm.rstd, {groups});
      check_near(input.x, plain.dx, bound);
      CHECK(!input.weight.defined());
      CHECK(!input.bias.defined());
    }
  }
}

TEST_CASE("gradients of parameters go where they belong and add to what is there") {
  const Tensor x = random({5, 4, 3}, 1), grad = random({5, 4, 3}, 2), weight = random({4}, 3);
  const GroupNorm norm = group_norm(x, 2, weight, {}, 1e-5);
  const GroupNormGrads fresh =
      group_norm_backward(grad, x, weight, norm.mean, norm.rstd, {2, false, {true, kFloat64}, {true, kFloat64}});
  CHECK(!fresh.x.defined());
  const Tensor place = full({4}, 2, kFloat64);
  const GroupNormGrads added =
      group_norm_backward(grad, x, weight, norm.mean, norm.rstd, {2, false, {true, kFloat64, place, true}, {}});
  CHECK(added.weight.is_same(place));
  check_near(place, binary_scalar(fresh.weight, 2, BinaryOp::Add, false).to_vector<double>(), 1e-14);
}

TEST_CASE("views and empty batches; errors name shapes and dtypes") {
  const Tensor x = random({6, 4, 3}, 1);
  const Tensor turned = view::transpose(x, 0, 2);
  CHECK(group_norm(turned, 2, {}, {}, 1e-5).y.to_vector<double>() ==
        group_norm(clone(turned), 2, {}, {}, 1e-5).y.to_vector<double>());
  const Tensor none = zeros({0, 4, 3});
  const GroupNorm norm = group_norm(none, 2, {}, {}, 1e-5);
  CHECK(norm.y.sizes() == Shape{0, 4, 3});
  CHECK(group_norm_backward(none, none, {}, norm.mean, norm.rstd, {2, true, {true, kFloat32}, {}})
            .weight.to_vector<double>() == std::vector<double>{0, 0, 0, 0});

  CHECK_THROWS_WITH_AS(group_norm(x, 3, {}, {}, 1e-5), doctest::Contains("got input [6, 4, 3] and num_groups 3"),
                       ValueError);
  CHECK_THROWS_AS(group_norm(x, 0, {}, {}, 1e-5), ValueError);
  CHECK_THROWS_AS(group_norm(zeros({4}), 2, {}, {}, 1e-5), ShapeError);
  CHECK_THROWS_AS(group_norm(zeros({2, 4, 0}), 2, {}, {}, 1e-5), ShapeError);
  CHECK_THROWS_WITH_AS(group_norm(x, 2, ones({3}), {}, 1e-5), doctest::Contains("weight must be [4]"), ShapeError);
  CHECK_THROWS_AS(group_norm(x, 2, {}, ones({4}, kInt64), 1e-5), DTypeError);
  CHECK_THROWS_WITH_AS(group_norm(ones({2, 4}, kInt64), 2, {}, {}, 1e-5), doctest::Contains("got int64"), DTypeError);
  CHECK_THROWS_AS(group_norm_backward(x, x, {}, ones({6, 4}, kFloat64), ones({6, 2}, kFloat64), {2}), ShapeError);
  CHECK_THROWS_AS(group_norm_backward(random({6, 3, 4}, 1), x, {}, norm.mean, norm.rstd, {2}), ShapeError);
}

}  // namespace brigade::test::group_norm_test
