// Gradients within the range of a dtype come out right even where an intermediate step of the formula would leave it.
#include <brigade/autograd/backward.h>
#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

namespace brigade::test::gradient_range_test {
namespace {

using Values = std::vector<double>;
Tensor leaf(const Values& values, DType dtype) {
  return tensor(values, {static_cast<int64_t>(values.size())}).to(dtype).requires_grad_();
}

struct Row {
  const char* name;
  Tensor (*apply)(const Tensor& x);
  Values at;
  double slope = 1;      // the gradient of the output
  double tolerance = 8;  // in roundings
};

// The tolerance allows for rounded inputs and a few roundings; below the smallest normal number it is absolute.
void check_gradient(const Row& row, DType dtype, double epsilon, double smallest, double largest) {
  const Tensor x = leaf(row.at, dtype);
  const Tensor y = row.apply(x);
  y.backward({.gradient = full(y.sizes(), row.slope, y.options())});
  const Tensor exact = x.detach().to(kFloat64).requires_grad_();
  const Tensor z = row.apply(exact);
  z.backward({.gradient = full(z.sizes(), row.slope, z.options()).to(dtype).to(kFloat64)});
  const Values found = x.grad().to_vector<double>();
  const Values expected = exact.grad().to_vector<double>();
  for (size_t i = 0; i < found.size(); ++i) {
    CAPTURE(std::string(row.name));
    CAPTURE(std::string(name(dtype)));
    CAPTURE(row.at[i]);
    CAPTURE(found[i]);
    CAPTURE(expected[i]);
    if (std::abs(expected[i]) > largest) {
      CHECK(std::isinf(found[i]));
    } else {
      CHECK(std::abs(found[i] - expected[i]) <= row.tolerance * epsilon * std::abs(expected[i]) + smallest);
    }
  }
}

const Values kHalf{1e-3, 0.25, 1, 3, 300, 3e4};

const Row kRows[] = {
    {"a / x", [](const Tensor& x) { return div(full_like(x, 1000), x); }, kHalf},
    {"1000 / x", [](const Tensor& x) { return div(1000, x); }, kHalf},
    {"reciprocal", [](const Tensor& x) { return reciprocal(x); }, kHalf, 1e-3},
    {"x / 3", [](const Tensor& x) { return x / 3; }, kHalf},
    {"square", [](const Tensor& x) { return square(x); }, {1e-3, 1, 200, 4e4}, 1e-3},
    {"pow(x, 3)", [](const Tensor& x) { return pow(x, 3); }, {1e-3, 1, 40}, 1e-2},
    {"pow(x, -1)", [](const Tensor& x) { return pow(x, -1); }, kHalf, 1e-2},
    {"pow(x, -0.5)", [](const Tensor& x) { return pow(x, -0.5); }, kHalf, 1e-2},
    {"pow(3, x)", [](const Tensor& x) { return pow(3, x); }, {1e-3, 1, 10}, 1e-3},
    {"pow(x, y)", [](const Tensor& x) { return pow(x, full_like(x, -1.5)); }, {2e-3, 1, 300}, 1e-2},
    {"rsqrt", [](const Tensor& x) { return rsqrt(x); }, kHalf, 1e-2},
    {"atan", [](const Tensor& x) { return atan(x); }, kHalf, 100},
    {"atan2(y, 2)", [](const Tensor& y) { return atan2(y, full_like(y, 2)); }, kHalf, 100},
    {"atan2(2, x)", [](const Tensor& x) { return atan2(full_like(x, 2), x); }, kHalf, 100},
    {"atan2(x, x / 2)", [](const Tensor& x) { return atan2(x, x.detach() * 0.5); }, kHalf},
    {"asin", [](const Tensor& x) { return asin(x); }, {1e-3, 0.5, 0.999}},
    {"tan", [](const Tensor& x) { return tan(x); }, {1e-3, 1, 1.57}, 1e-3},
    {"cosh", [](const Tensor& x) { return cosh(x); }, {1e-3, 1, 11.7}, 1e-2},
    {"log2", [](const Tensor& x) { return log2(x); }, kHalf, 20},
    {"log10", [](const Tensor& x) { return log10(x); }, kHalf, 20},
    {"fmod", [](const Tensor& x) { return fmod(full_like(x, 60), x); }, {0.25, 1, 7}},
    {"addcmul", [](const Tensor& x) { return addcmul(x, x, full_like(x, 300), 1e-3); }, kHalf, 300},
    {"addcdiv", [](const Tensor& x) { return addcdiv(x, full_like(x, 1000), x, 0.01); }, kHalf},
    {"lerp", [](const Tensor& x) { return lerp(x, full_like(x, -4e4), full_like(x, 0.5)); }, kHalf},
    {"norm", [](const Tensor& x) { return norm(x, 2); }, {300, 1e-3, 2e4, 3e4}, 100},
    {"norm of small numbers", [](const Tensor& x) { return norm(x, 2); }, {3e-5, 4e-5}, 30},
    {"norm of order 3", [](const Tensor& x) { return norm(x, 3); }, {30, 1, 20}, 2},
    {"normalize", [](const Tensor& x) { return normalize(x, 2, 0); }, {300, 400, 3000, 2}, 100, 32},
    {"cosine_similarity",
     [](const Tensor& x) { return cosine_similarity(x, arange(1, 5, 1, x.options()), 0); },
     {300, 400, 3000, 2},
     1000,
     32},
    {"var", [](const Tensor& x) { return var(x, {}); }, {300, 400, 3000, 2}},
    {"var of numbers that lie close together", [](const Tensor& x) { return var(x, {}); }, {1000, 1001, 1002, 1000}},
    {"std", [](const Tensor& x) { return brigade::std(x, {}); }, {300, 400, 3000, 2}, 10},
    {"cumprod", [](const Tensor& x) { return cumprod(x, 0); }, {1e-3, 300, 300, 300}},
};

}  // namespace

TEST_CASE("gradients of half types are those of float64, rounded, wherever the dtype can hold them") {
  for (const Row& row : kRows) {
    check_gradient(row, kFloat16, 0x1p-11, 0x1p-23, 65504);
    check_gradient(row, kBFloat16, 0x1p-8, 0x1p-126, 3e38);
  }
}

TEST_CASE("gradients at the ends of the range of float32 and bfloat16") {
  const Row rows[] = {
      {"a / x", [](const Tensor& x) { return div(full_like(x, 1e25), x); }, {1e-5, 1e10, 1e22, 1e30}, 1e-2},
      {"a / x after a large slope", [](const Tensor& x) { return div(full_like(x, 1e25), x); }, {1e22, 1e30}, 1e20},
      {"number / x", [](const Tensor& x) { return div(1e25, x); }, {1e-5, 1e10, 1e22, 1e30}, 1e-2},
      {"addcdiv", [](const Tensor& x) { return addcdiv(x, full_like(x, 1e25), x, 1); }, {1e22, 1e30}, 1e10},
      {"rsqrt", [](const Tensor& x) { return rsqrt(x); }, {1e-26, 1e20}, 1e-10},
      {"square", [](const Tensor& x) { return square(x); }, {3e38, 1e30}, 1e-10},
      {"atan2(y, a)", [](const Tensor& y) { return atan2(y, full_like(y, 1e25)); }, {1e20, 1e25, 1e30}},
      {"atan2(a, x)", [](const Tensor& x) { return atan2(full_like(x, 1e-25), x); }, {1e-25, 3e-25, 1e-20}},
      {"norm", [](const Tensor& x) { return norm(x, 2); }, {3e-18, 4e-18}, 1e25},
  };
  for (const Row& row : rows) {
    check_gradient(row, kFloat32, 0x1p-24, 0x1p-140, 3e38);
    check_gradient(row, kBFloat16, 0x1p-8, 0x1p-126, 3e38);
  }
}

TEST_CASE("second derivatives of half types go through the same formulas") {
  for (const DType dtype : {kFloat16, kBFloat16}) {
    CAPTURE(std::string(name(dtype)));
    const Tensor x = leaf({3, 300}, dtype);
    const Tensor outputs[] = {div(1000, x).sum()}, inputs[] = {x};
    const Tensor slope = autograd::grad(outputs, inputs, {.create_graph = true})[0];
    CHECK(slope.dtype() == dtype);
    slope.sum().backward();
    const Values found = x.grad().to_vector<double>();
    CHECK(found[0] == doctest::Approx(2000.0 / 27).epsilon(0.03));
    CHECK(found[1] == doctest::Approx(2000.0 / 2.7e7).epsilon(0.03));
  }
}

TEST_CASE("atan2 has no gradient at the origin, and none at infinity but NaN for what is infinite") {
  const double infinity = INFINITY;
  const Tensor y = leaf({0, 1, infinity, 2}, kFloat32), x = leaf({0, infinity, 1, 0}, kFloat32);
  atan2(y, x).sum().backward();
  const Values along_y = y.grad().to_vector<double>(), along_x = x.grad().to_vector<double>();
  CHECK(along_y[0] == 0);
  CHECK(along_x[0] == 0);
  CHECK(std::isnan(along_y[1]));
  CHECK(along_x[1] == 0);
  CHECK(along_y[2] == 0);
  CHECK(std::isnan(along_x[2]));
  CHECK(along_y[3] == 0);
  CHECK(along_x[3] == doctest::Approx(-0.5));
}

TEST_CASE("rms_norm without an eps adds that of the type it computes in") {
  // F.rms_norm of PyTorch 2.15.
  struct Expected {
    DType dtype;
    Values values;
  };
  for (const auto& [dtype, expected] :
       {Expected{kFloat16, {0.50830078125, 1.0166015625, -0.50830078125, 1.525390625}},
        Expected{kBFloat16, {0.5078125, 1.015625, -0.5078125, 1.5234375}},
        Expected{kFloat32, {0.5083805322647095, 1.016761064529419, -0.5083805322647095, 1.5251414775848389}},
        Expected{kFloat64, {0.5163977794790339, 1.0327955589580677, -0.5163977794790339, 1.5491933384371015}}}) {
    CAPTURE(std::string(name(dtype)));
    const Tensor x = tensor<double>({1e-3, 2e-3, -1e-3, 3e-3}).to(dtype);
    const Values found = rms_norm(x, {4}).to_vector<double>();
    for (size_t i = 0; i < found.size(); ++i)
      CHECK(found[i] == doctest::Approx(expected[i]).epsilon(1e-6));
  }
}

}  // namespace brigade::test::gradient_range_test
