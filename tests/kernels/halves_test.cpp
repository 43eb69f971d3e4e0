// Half types where they go another way than through buffers of stretches: what comes out is what float32 gives,
// rounded.
#include <brigade/kernels/activation.h>
#include <brigade/kernels/batch_norm.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/softmax.h>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace brigade;
using namespace brigade::kernels;

namespace {

Tensor random(const Shape& sizes, uint64_t seed, DType dtype) {
  Generator generator(seed);
  return cast(randn(sizes, {}, &generator), dtype);
}
Tensor wide(const Tensor& x) { return cast(x, kFloat32); }
void check_same(const Tensor& found, const Tensor& in_float32) {
  REQUIRE(is_half(found.dtype()));
  CHECK(found.to_vector<float>() == cast(in_float32, found.dtype()).to_vector<float>());
}

}  // namespace

TEST_CASE("relu of every half, and its gradient, are those of float32") {
  for (const DType dtype : {kFloat16, kBFloat16}) {
    CAPTURE(name(dtype));
    const Tensor x = empty({65536}, dtype);
    auto* const patterns = static_cast<uint16_t*>(x.raw_data());
    for (int i = 0; i < 65536; ++i)
      patterns[i] = static_cast<uint16_t>(i);
    const Tensor wide = cast(x, kFloat32), slope = full({65536}, 3, dtype);
    const auto same = [](const Tensor& found, const Tensor& expected) {
      const auto a = found.to_vector<float>(), b = expected.to_vector<float>();
      int wrong = 0;
      for (size_t i = 0; i < a.size(); ++i)
        wrong += std::isnan(a[i]) ? !std::isnan(b[i]) : a[i] != b[i] || std::signbit(a[i]) != std::signbit(b[i]);
      CHECK(wrong == 0);
    };
    same(relu(x), relu(wide));
    same(relu_backward(slope, x), relu_backward(cast(slope, kFloat32), wide));
  }
}

TEST_CASE("softmax of halves, row by row and as a whole") {
  for (const DType dtype : {kFloat16, kBFloat16}) {
    CAPTURE(name(dtype));
    for (const int64_t n : {1, 33, 4096, 4097}) {
      CAPTURE(n);
      const Tensor x = random({3, n}, 1, dtype), g = random({3, n}, 2, dtype);
      for (const int dim : {0, 1}) {
        CAPTURE(dim);
        const Tensor y = softmax(x, dim), logarithm = log_softmax(x, dim);
        check_same(y, softmax(wide(x), dim));
        check_same(logarithm, log_softmax(wide(x), dim));
        check_same(softmax_backward(g, y, dim), softmax_backward(wide(g), wide(y), dim));
        check_same(log_softmax_backward(g, logarithm, dim), log_softmax_backward(wide(g), wide(logarithm), dim));
      }
    }
  }
  CHECK(softmax(empty({0, 3}, kBFloat16), 1).numel() == 0);
  CHECK(softmax(empty({3, 0}, kBFloat16), 1).numel() == 0);
}

TEST_CASE("batch_norm of halves, a channel by itself and several beside each other") {
  for (const DType dtype : {kFloat16, kBFloat16}) {
    CAPTURE(name(dtype));
    for (const Shape& sizes : {Shape{4, 3, 50}, Shape{5, 300}, Shape{3, 7, 5}, Shape{2, 3, 8, 8}}) {
      CAPTURE(to_string(sizes));
      const int64_t channels = sizes[1];
      const Tensor x = random(sizes, 1, dtype), g = random(sizes, 2, dtype);
      const Tensor weight = random({channels}, 3, kFloat32), bias = random({channels}, 4, kFloat32);
      for (const bool training : {true, false}) {
        CAPTURE(training);
        const Tensor mean = zeros({channels}), var = ones({channels}), mean32 = zeros({channels}),
                     var32 = ones({channels});
        const BatchNorm found = batch_norm(x, weight, bias, mean, var, training, 0.1, 1e-5);
        const BatchNorm expected = batch_norm(wide(x), weight, bias, mean32, var32, training, 0.1, 1e-5);
        check_same(found.y, expected.y);
        CHECK(mean.to_vector<float>() == mean32.to_vector<float>());
        CHECK(var.to_vector<float>() == var32.to_vector<float>());
        const BatchNormGrads slopes = batch_norm_backward(g, x, weight, found.mean, found.invstd, training);
        const BatchNormGrads slopes32 =
            batch_norm_backward(wide(g), wide(x), weight, expected.mean, expected.invstd, training);
        check_same(slopes.x, slopes32.x);
        CHECK(slopes.weight.to_vector<float>() == slopes32.weight.to_vector<float>());
        CHECK(slopes.bias.to_vector<float>() == slopes32.bias.to_vector<float>());
      }
    }
  }
}
