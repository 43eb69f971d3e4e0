// Regions of autocast: what is cast, what nests, and what is refused.
#include <brigade/amp/autocast.h>
#include <brigade/autograd/functional.h>
#include <brigade/core/warning.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>

#include <core/error_of.h>
#include <doctest/doctest.h>

namespace brigade::test::autocast_test {
using amp::autocast;

namespace {

Tensor matrix(DType dtype = kFloat32) { return ones({2, 2}, dtype); }

// Returns the dtype that autocast chooses for a matrix product.
DType product_dtype(const Tensor& a = matrix(), const Tensor& b = matrix()) { return mm(a, b).dtype(); }

struct Told {
  std::vector<Warning> warnings;
  Told() : before_(set_warning_handler([this](const Warning& warning) { warnings.push_back(warning); })) {}
  ~Told() { set_warning_handler(before_); }

 private:
  std::function<void(const Warning&)> before_;
};

}  // namespace

TEST_CASE("a region casts products to its dtype and ends with its guard") {
  CHECK(product_dtype() == kFloat32);
  CHECK_FALSE(amp::is_autocast_enabled(kCPU));
  for (const DType dtype : {kBFloat16, kFloat16}) {
    const autocast guard(kCPU, dtype);
    CHECK(amp::is_autocast_enabled(kCPU));
    CHECK_FALSE(amp::is_autocast_enabled(kCUDA));
    CHECK(amp::autocast_dtype(kCPU) == dtype);
    CHECK(product_dtype() == dtype);
    CHECK(product_dtype(matrix(dtype)) == dtype);
    CHECK(product_dtype(matrix(kFloat64), matrix(kFloat64)) == kFloat64);
    CHECK(linear(matrix(), matrix(), ones({2})).dtype() == dtype);
    CHECK(add(matrix(), matrix()).dtype() == kFloat32);
    CHECK(mse_loss(matrix(dtype), matrix(dtype)).dtype() == kFloat32);
    CHECK(cat({matrix(dtype), matrix()}).dtype() == kFloat32);
    CHECK(cat({matrix(dtype), matrix(dtype)}).dtype() == dtype);
    CHECK(relu(matrix(dtype)).dtype() == dtype);
  }
  CHECK(product_dtype() == kFloat32);
}

TEST_CASE("a region without a dtype takes that of the region around, at first bfloat16 on the CPU") {
  CHECK(amp::autocast_dtype(kCPU) == kBFloat16);
  CHECK(amp::autocast_dtype(kCUDA) == kFloat16);
  const autocast outer(kCPU);
  CHECK(product_dtype() == kBFloat16);
  const autocast half(kCPU, kFloat16);
  const autocast inner(kCPU);
  CHECK(product_dtype() == kFloat16);
}

TEST_CASE("regions nest: disabled inside of enabled, and enabled again inside of that") {
  const autocast on(kCPU, kFloat16);
  {
    const autocast off(kCPU, {}, false);
    CHECK_FALSE(amp::is_autocast_enabled(kCPU));
    CHECK(product_dtype() == kFloat32);
    {
      const autocast again(kCPU);
      CHECK(product_dtype() == kFloat16);
    }
    CHECK(product_dtype() == kFloat32);
  }
  CHECK(product_dtype() == kFloat16);
}

TEST_CASE("a weight is cast to the dtype of each region it is used in") {
  const Tensor weight = matrix().requires_grad_();
  const autocast outer(kCPU, kBFloat16);
  CHECK(product_dtype(weight) == kBFloat16);
  {
    const autocast inner(kCPU, kFloat16);
    CHECK(product_dtype(weight) == kFloat16);
  }
  CHECK(product_dtype(weight) == kBFloat16);
}

TEST_CASE("a region for CUDA leaves tensors on the CPU alone") {
  const autocast guard(kCUDA, kFloat16);
  CHECK(amp::is_autocast_enabled(kCUDA));
  CHECK(product_dtype() == kFloat32);
  const autocast both(kCPU, kBFloat16);
  CHECK(amp::is_autocast_enabled(kCUDA));
  CHECK(product_dtype() == kBFloat16);
}

TEST_CASE("a region ends when an exception leaves it") {
  try {
    const autocast guard(kCPU, kBFloat16);
    throw ValueError("out");
  } catch (const ValueError&) {
  }
  CHECK_FALSE(amp::is_autocast_enabled(kCPU));
  // An operation that throws inside of a region leaves autocast enabled.
  const autocast guard(kCPU, kBFloat16);
  CHECK_THROWS_AS(mm(ones({2, 3}), ones({2, 3})), ShapeError);
  CHECK(product_dtype() == kBFloat16);
}

TEST_CASE("another dtype than a half type is a warning, and the region is not enabled") {
  Told told;
  for (const DType dtype : {kFloat32, kFloat64, kInt32}) {
    const autocast guard(kCPU, dtype);
    CHECK_FALSE(amp::is_autocast_enabled(kCPU));
    CHECK(product_dtype() == kFloat32);
  }
  REQUIRE(told.warnings.size() == 3);
  CHECK(told.warnings[0].message.find("In CPU autocast") == 0);
  CHECK(told.warnings[0].message.find("but the target dtype is not supported. Disabling autocast.") !=
        std::string::npos);
  CHECK(told.warnings[0].message.find("autocast_test.cpp:") != std::string::npos);
  CHECK(told.warnings[0].message.find("got float32") != std::string::npos);
  CHECK(told.warnings[0].advice.find("kBFloat16") != std::string::npos);
  const autocast off(kCPU, kFloat32, false);
  CHECK(told.warnings.size() == 3);
}

TEST_CASE("binary cross entropy is computed in float32 on the CPU") {
  const autocast guard(kCPU, kBFloat16);
  CHECK(binary_cross_entropy(full({2}, 0.5, kBFloat16), ones({2}, kBFloat16)).dtype() == kFloat32);
}

TEST_CASE("operations that are made of listed ones, but not listed themselves, are not cast") {
  const autocast guard(kCPU, kBFloat16);
  CHECK(dot(ones({3}), ones({3})).dtype() == kFloat32);
  CHECK(mv(matrix(), ones({2})).dtype() == kFloat32);
  CHECK(bilinear(matrix(), matrix(), ones({2, 2, 2})).dtype() == kFloat32);
  // PyTorch too composes einsum of listed operations, so its operands are cast.
  CHECK(einsum("ij,jk->ik", {matrix(), matrix()}).dtype() == kBFloat16);
}

TEST_CASE("what is written in place keeps its dtype") {
  const autocast guard(kCPU, kBFloat16);
  const Tensor y = mm(matrix(), matrix());
  y.add_(matrix());
  CHECK(y.dtype() == kBFloat16);
  CHECK(y.to_vector<double>() == std::vector<double>{3, 3, 3, 3});
}

TEST_CASE("a module's parameters get their gradients in float32") {
  const nn::Linear layer(2, 2);
  Tensor y;
  {
    const autocast guard(kCPU, kFloat16);
    y = layer(matrix());
    CHECK(y.dtype() == kFloat16);
  }
  y.sum().backward();
  CHECK(layer->weight.grad().dtype() == kFloat32);
  CHECK(layer->weight.grad().to_vector<double>() == std::vector<double>{2, 2, 2, 2});
  CHECK(layer->bias.grad().to_vector<double>() == std::vector<double>{2, 2});
}

}  // namespace brigade::test::autocast_test
