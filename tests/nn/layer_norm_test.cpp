#include "printed.h"

#include <brigade/autograd/listener.h>
#include <nn/models.h>

#include <doctest/doctest.h>

#include <cmath>

namespace brigade::test::layer_norm_test {

TEST_CASE("LayerNorm starts as plain normalisation; its weight and bias then scale and shift") {
  nn::LayerNorm norm(2);
  CHECK(names_of(norm->state_dict()) == std::vector<std::string>{"weight", "bias"});
  const Tensor x = tensor(std::vector<float>{1, 3, -2, 4}, {2, 2});
  const float first = 1 / std::sqrt(1 + 1e-5F), second = 3 / std::sqrt(9 + 1e-5F);
  CHECK(floats(norm(x))[1] == doctest::Approx(first));
  CHECK(floats(norm(x))[2] == doctest::Approx(-second));
  {
    const NoGradGuard no_grad;
    norm->weight.copy_(tensor<float>({2, 10}));
    norm->bias.copy_(tensor<float>({1, -1}));
  }
  CHECK(floats(norm(x))[1] == doctest::Approx(10 * first - 1));
  CHECK(floats(norm(x))[2] == doctest::Approx(-2 * second + 1));
}

TEST_CASE("RMSNorm divides by the root of the mean square") {
  nn::RMSNorm norm(2, {.eps = 0.5});
  CHECK(names_of(norm->state_dict()) == std::vector<std::string>{"weight"});
  const Tensor x = tensor(std::vector<float>{3, 4}, {2});
  CHECK(floats(norm(x))[0] == doctest::Approx(3 / std::sqrt(12.5 + 0.5)));
  // The default eps is that of the type of the computation; without an eps, zeros would become NaN.
  CHECK(floats(nn::RMSNorm(2)(zeros({2}))) == std::vector<float>{0, 0});
  const Tensor small = full({2}, 1e-4, kFloat32);
  CHECK(floats(rms_norm(small, {2}))[0] == doctest::Approx(1e-4 / std::sqrt(1e-8 + 0x1p-23)));
  CHECK(doubles(rms_norm(full({2}, 1e-4, kFloat64), {2}))[0] == doctest::Approx(1));
  for (const DType half : {kBFloat16, kFloat16}) {
    CAPTURE(half);
    CHECK(floats(rms_norm(full({2}, 0x1p-12, half), {2}))[0] ==
          doctest::Approx(0x1p-12 / std::sqrt(0x1p-24 + 0x1p-23)).epsilon(0.01));
  }
}

TEST_CASE("options of LayerNorm and RMSNorm: shapes, parameters, dtypes, and how they print") {
  nn::LayerNorm wide({2, 3}, {.eps = 1e-3, .dtype = kFloat64});
  CHECK(wide->weight.sizes() == Shape{2, 3});
  CHECK(wide->bias.dtype() == kFloat64);
  CHECK(wide(ones({4, 2, 3}, kFloat64)).sizes() == Shape{4, 2, 3});
  CHECK(printed(wide).find("LayerNorm([2, 3], eps=0.001, elementwise_affine=true)") != std::string::npos);
  CHECK(nn::LayerNorm(4, {.elementwise_affine = false})->parameters().empty());
  nn::LayerNorm half(4, {.bias = false});
  CHECK(half->parameters().size() == 1);
  CHECK(printed(half).find("bias=false") != std::string::npos);
  CHECK(nn::RMSNorm(4, {.elementwise_affine = false})->parameters().empty());
  CHECK(printed(nn::RMSNorm(4)).find("RMSNorm([4], eps=none, elementwise_affine=true)") != std::string::npos);
  CHECK(nn::RMSNorm({2, 2}, {.dtype = kFloat64})(ones({1, 2, 2}, kFloat64)).dtype() == kFloat64);
  CHECK_THROWS_WITH_AS(nn::LayerNorm(0), doctest::Contains("at least 1, got [0]"), ValueError);
  CHECK_THROWS_AS(nn::RMSNorm(Shape{}), ValueError);
  CHECK_THROWS_WITH_AS(nn::LayerNorm(4)(ones({2, 3})), doctest::Contains("normalized_shape [4]"), ShapeError);
  CHECK_THROWS_WITH_AS(nn::LayerNorm(4)(ones({2, 3})), doctest::Contains("layer_norm_test.cpp"), ShapeError);
}

TEST_CASE("gradients reach input and parameters; one that has a place is born there") {
  nn::LayerNorm norm(3, {.dtype = kFloat64});
  RandomGenerator generator(1);
  const Tensor x = randn({5, 3}, kFloat64, &generator).requires_grad_();
  const auto loss = [&] { return square(norm(x) - 2.0).sum(); };
  const Tensor place = zeros({3}, kFloat64);
  autograd::set_grad_target(norm->weight, place);
  loss().backward();
  CHECK(norm->weight.grad().is_same(place));
  CHECK(x.grad().sizes() == x.sizes());
  const std::vector<double> once = doubles(norm->weight.grad());
  loss().backward();
  for (size_t i = 0; i < 3; ++i)
    CHECK(doubles(norm->weight.grad())[i] == doctest::Approx(2 * once[i]));
  CHECK(norm->bias.grad().defined());
  // A frozen weight gets no gradient.
  nn::RMSNorm plain(3);
  plain->weight.requires_grad_(false);
  const Tensor z = ones({2, 3}).requires_grad_();
  plain(z).sum().backward();
  CHECK(!plain->weight.grad().defined());
  CHECK(z.grad().defined());
}

}  // namespace brigade::test::layer_norm_test
