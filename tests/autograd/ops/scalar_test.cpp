// Scalars as operands: their C++ type determines the dtype of a result, their value never does.
#include <near.h>

#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

#include <cmath>
#include <string>

namespace brigade::test::scalar_test {
using test::check_near;

namespace {

struct Row {
  const char* name;
  Tensor result;
  DType dtype;
  std::vector<double> values;
};

}  // namespace

TEST_CASE("an integer leaves integers what they are, and a floating number makes float32 of them, whole or not") {
  const Tensor i = tensor({1, 2, 5});
  const Tensor small = tensor({1, 2, 5}, kUInt8);
  const Tensor mask = i > 1;
  // Dtypes and values of PyTorch 2.15.
  const std::vector<Row> rows = {
      {"i * 2", i * 2, kInt64, {2, 4, 10}},
      {"i * 2.0", i * 2.0, kFloat32, {2, 4, 10}},
      {"2.0F * i", 2.0F * i, kFloat32, {2, 4, 10}},
      {"i + true", i + true, kInt64, {2, 3, 6}},
      {"i + 1.0", i + 1.0, kFloat32, {2, 3, 6}},
      {"small + 1", small + 1, kUInt8, {2, 3, 6}},
      {"small + 1.0", small + 1.0, kFloat32, {2, 3, 6}},
      {"1 - i", 1 - i, kInt64, {0, -1, -4}},
      {"1.0 - i", 1.0 - i, kFloat32, {0, -1, -4}},
      {"i - 1.0", i - 1.0, kFloat32, {0, 1, 4}},
      {"i / 2", i / 2, kFloat32, {0.5, 1, 2.5}},
      {"i % 2", i % 2, kInt64, {1, 0, 1}},
      {"i % 2.0", i % 2.0, kFloat32, {1, 0, 1}},
      {"fmod(i, 2)", fmod(i, 2), kInt64, {1, 0, 1}},
      {"fmod(i, 2.0)", fmod(i, 2.0), kFloat32, {1, 0, 1}},
      {"pow(i, 2)", pow(i, 2), kInt64, {1, 4, 25}},
      {"pow(i, 2.0)", pow(i, 2.0), kFloat32, {1, 4, 25}},
      {"i.pow(-1.0)", i.pow(-1.0), kFloat32, {1, 0.5, 0.2}},
      {"pow(2, i)", pow(2, i), kInt64, {2, 4, 32}},
      {"pow(2.0, i)", pow(2.0, i), kFloat32, {2, 4, 32}},
      {"clamp(i, 2, 4)", clamp(i, 2, 4), kInt64, {2, 2, 4}},
      {"clamp(i, 2.0)", clamp(i, 2.0), kFloat32, {2, 2, 5}},
      {"i.clamp(2, 4.0)", i.clamp(2, 4.0), kFloat32, {2, 2, 4}},
      {"clamp_max(i, 4.0)", clamp_max(i, 4.0), kFloat32, {1, 2, 4}},
      {"where(mask, i, 0)", where(mask, i, 0), kInt64, {0, 2, 5}},
      {"where(mask, i, 0.0)", where(mask, i, 0.0), kFloat32, {0, 2, 5}},
      {"where(mask, 1, 0)", where(mask, 1, 0), kInt64, {0, 1, 1}},
      {"where(mask, 1.0, 0)", where(mask, 1.0, 0), kFloat32, {0, 1, 1}},
      {"where(mask, true, false)", where(mask, true, false), kBool, {0, 1, 1}},
      {"mask * 1.0", mask * 1.0, kFloat32, {0, 1, 1}},
      {"mask * 3", mask * 3, kInt64, {0, 3, 3}},
      {"mask * true", mask * true, kBool, {0, 1, 1}},
      {"mask + true", mask + true, kBool, {1, 1, 1}},
      {"masked_fill(i, mask, 7.0)", masked_fill(i, mask, 7.0), kInt64, {1, 7, 7}},
      {"half * 2.0", i.to(kBFloat16) * 2.0, kBFloat16, {2, 4, 10}},
      {"double * 2", i.to(kFloat64) * 2, kFloat64, {2, 4, 10}},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.name));
    CHECK(row.result.dtype() == row.dtype);
    check_near(row.result, row.values, 1e-6);
  }
  const Tensor written = tensor({1, 2, 5});
  written += 1;
  written.mul_(2).sub_(1).fill_(3.7);
  CHECK(written.to_vector<int64_t>() == std::vector<int64_t>{3, 3, 3});
  CHECK_THROWS_AS(written += 1.0, DTypeError);
  CHECK_THROWS_AS(written *= 2.0, DTypeError);
  CHECK_THROWS_AS(written.add_(i, 1.0), ValueError);
  CHECK_THROWS_AS(i - (i > 1), DTypeError);
}

TEST_CASE("integers of 64 bits are computed with and compared exactly") {
  constexpr int64_t kLarge = (int64_t{1} << 53) + 1;  // double represents only its neighbors
  const Tensor i = tensor({kLarge - 1, kLarge});
  CHECK((i == kLarge).to_vector<bool>() == std::vector<bool>{false, true});
  CHECK((i < kLarge).to_vector<bool>() == std::vector<bool>{true, false});
  CHECK((i - kLarge).to_vector<int64_t>() == std::vector<int64_t>{-1, 0});
  CHECK(remainder(i, kLarge).to_vector<int64_t>() == std::vector<int64_t>{kLarge - 1, 0});
  CHECK(clamp(i, kLarge).to_vector<int64_t>() == std::vector<int64_t>{kLarge, kLarge});
  CHECK(where(i > 0, i, kLarge).to_vector<int64_t>() == std::vector<int64_t>{kLarge - 1, kLarge});
  CHECK(where(i < 0, i, kLarge).to_vector<int64_t>() == std::vector<int64_t>{kLarge, kLarge});
  CHECK(masked_fill(i, i > 0, kLarge).to_vector<int64_t>() == std::vector<int64_t>{kLarge, kLarge});
  CHECK(zeros({1}, kInt64).fill_(kLarge).item<int64_t>() == kLarge);
  CHECK(zeros({1}, kInt64).add_(ones({1}, kInt64), kLarge).item<int64_t>() == kLarge);
  CHECK(ones({1}, kInt64).mul_(kLarge).item<int64_t>() == kLarge);
  CHECK((tensor({2, 3}) == 2.5).to_vector<bool>() == std::vector<bool>{false, false});
  CHECK((tensor({2, 3}) < 2.5).to_vector<bool>() == std::vector<bool>{true, false});
}

TEST_CASE("clamp promotes its input and both borders at once") {
  const Tensor y = clamp(tensor({5, 5}), tensor({1, 2}, kInt32), tensor({1.5, 9.5}));
  CHECK(y.dtype() == kFloat32);
  CHECK(y.to_vector<float>() == std::vector<float>{1.5F, 5});
  // The input and the lower bound alone would promote to float32, which cannot represent this number.
  constexpr int64_t kLarge = (int64_t{1} << 24) + 1;
  const Tensor exact = clamp(tensor({kLarge}), tensor({0.0}), tensor({1e9}, kFloat64));
  CHECK(exact.dtype() == kFloat64);
  CHECK(exact.item() == kLarge);
}

TEST_CASE("functions of real numbers take integers and bools as float32") {
  const Tensor i = tensor({1, 4});
  const std::vector<Row> rows = {
      {"sqrt", sqrt(i), kFloat32, {1, 2}},
      {"exp", i.exp(), kFloat32, {std::exp(1.0), std::exp(4.0)}},
      {"log", log(i), kFloat32, {0, std::log(4.0)}},
      {"rsqrt", rsqrt(i), kFloat32, {1, 0.5}},
      {"sin", brigade::sin(i), kFloat32, {std::sin(1.0), std::sin(4.0)}},
      {"tanh", tanh(i), kFloat32, {std::tanh(1.0), std::tanh(4.0)}},
      {"sigmoid", sigmoid(i), kFloat32, {1 / (1 + std::exp(-1.0)), 1 / (1 + std::exp(-4.0))}},
      {"reciprocal", reciprocal(i), kFloat32, {1, 0.25}},
      {"exp of bools", exp(i > 1), kFloat32, {1, std::exp(1.0)}},
      {"square", square(i), kInt64, {1, 16}},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.name));
    CHECK(row.result.dtype() == row.dtype);
    check_near(row.result, row.values, 1e-6);
  }
  CHECK_THROWS_AS(sqrt_(i), DTypeError);
  CHECK_THROWS_AS(gelu(i), DTypeError);
}

TEST_CASE("a gradient that backward starts from is taken in the dtype of the root") {
  const Tensor x = ones({2}).requires_grad_();
  (x * 2.0).backward({.gradient = tensor({3, 4})});
  CHECK(x.grad().dtype() == kFloat32);
  CHECK(x.grad().to_vector<float>() == std::vector<float>{6, 8});
  const Tensor weight = tensor({0.5, 1.5}, kFloat64).requires_grad_();
  const Tensor slope = autograd::grad({x * x}, {x}, {.grad_outputs = {weight}, .create_graph = true})[0];
  CHECK(slope.dtype() == kFloat32);
  slope.sum().backward();
  CHECK(weight.grad().dtype() == kFloat64);
  CHECK(weight.grad().to_vector<double>() == std::vector<double>{2, 2});
}

}  // namespace brigade::test::scalar_test
