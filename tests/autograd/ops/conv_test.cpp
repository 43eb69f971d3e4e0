// What conv1d, conv2d, and their transposes add to the kernels: dimensions, named padding, sizes, errors.
#include "compositions.h"

#include <near.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace brigade::test::conv_test {
namespace {

struct Transposed {
  Shape x, weight;
  ConvTranspose2dFuncOptions params;
};

// Transposed convolution by definition: each element of x adds its product with the kernel to the result.
Tensor scattered(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& like,
                 const ConvTranspose2dFuncOptions& p) {
  const auto in = x.to_vector<double>();
  const auto w = weight.to_vector<double>();
  const auto b = bias.to_vector<double>();
  const int64_t channels = x.size(1), per_group = weight.size(1), height = like.size(2), width = like.size(3);
  std::vector<double> y(static_cast<size_t>(like.numel()));
  for (size_t i = 0; i < y.size(); ++i)
    y[i] = b[i / static_cast<size_t>(height * width) % b.size()];
  size_t at = 0;
  for (int64_t n = 0; n < x.size(0); ++n) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t h = 0; h < x.size(2); ++h) {
        for (int64_t v = 0; v < x.size(3); ++v, ++at) {
          for (int64_t o = 0; o < per_group; ++o) {
            for (int64_t i = 0; i < weight.size(2); ++i) {
              for (int64_t j = 0; j < weight.size(3); ++j) {
                const int64_t row = h * p.stride[0] - p.padding[0] + i * p.dilation[0];
                const int64_t column = v * p.stride[1] - p.padding[1] + j * p.dilation[1];
                if (row < 0 || column < 0 || row >= height || column >= width) continue;
                const int64_t channel = c / (channels / p.groups) * per_group + o;
                y[static_cast<size_t>(((n * like.size(1) + channel) * height + row) * width + column)] +=
                    in[at] * w[static_cast<size_t>(((c * per_group + o) * weight.size(2) + i) * weight.size(3) + j)];
              }
            }
          }
        }
      }
    }
  }
  return tensor(y, like.sizes());
}

}  // namespace

TEST_CASE("a transposed convolution adds its kernel at each element of the input") {
  for (const auto& [x_sizes, weight_sizes, params] : std::vector<Transposed>{
           {{2, 3, 4, 5}, {3, 2, 3, 3}, {}},
           {{1, 2, 3, 3}, {2, 4, 2, 3}, {.stride = {2, 3}, .padding = {1, 0}, .output_padding = {1, 2}}},
           {{2, 4, 3, 2}, {4, 3, 3, 2}, {.stride = {2, 1}, .padding = {0, 1}, .groups = 2, .dilation = {1, 3}}},
           {{1, 2, 2, 3}, {2, 1, 2, 2}, {.stride = {1, 2}, .output_padding = {2, 2}, .dilation = {3, 4}}},
           {{1, 1, 1, 1}, {1, 1, 1, 1}, {}}}) {
    CAPTURE(to_string(weight_sizes));
    const Tensor x = normal_input(x_sizes, 1).detach();
    const Tensor weight = normal_input(weight_sizes, 2).detach();
    const Tensor bias = normal_input({weight_sizes[1] * params.groups}, 3).detach();
    const Tensor y = conv_transpose2d(x, weight, bias, params);
    for (int d = 0; d < 2; ++d) {
      const auto at = static_cast<size_t>(d);
      CHECK(y.size(2 + d) == (x.size(2 + d) - 1) * params.stride[at] - 2 * params.padding[at] +
                                 params.dilation[at] * (weight.size(2 + d) - 1) + params.output_padding[at] + 1);
    }
    CHECK(largest_difference(y, scattered(x, weight, bias, y, params)) < 1e-12);
    const Tensor y32 = conv_transpose2d(x.to(kFloat32), weight.to(kFloat32), bias.to(kFloat32), params);
    CHECK(largest_difference(y32.to(kFloat64), y) < 1e-5);
    const Tensor one = x.select(0, 0);
    CHECK(largest_difference(conv_transpose2d(one, weight, bias, params), y.select(0, 0)) < 1e-12);
  }
}

TEST_CASE("one dimension is two with a first of size 1") {
  const Tensor x = normal_input({2, 4, 9}, 1).detach();
  const Tensor weight = normal_input({6, 2, 3}, 2).detach();
  const Tensor bias = normal_input({6}, 3).detach();
  const Tensor y = conv1d(x, weight, bias, {.stride = 2, .padding = 3, .dilation = 2, .groups = 2});
  CHECK(y.sizes() == Shape{2, 6, 6});
  CHECK(largest_difference(y.unsqueeze(2),
                           conv2d(x.unsqueeze(2), weight.unsqueeze(2), bias,
                                  {.stride = {1, 2}, .padding = {0, 3}, .dilation = {1, 2}, .groups = 2})) == 0);
  CHECK(largest_difference(conv1d(x.select(0, 1), weight, bias, {.groups = 2}),
                           conv1d(x, weight, bias, {.groups = 2}).select(0, 1)) < 1e-13);
  const Tensor filter = normal_input({4, 3, 3}, 4).detach();
  const Tensor up = conv_transpose1d(x, filter, {}, {.stride = 2, .padding = 1, .output_padding = 1, .groups = 2});
  CHECK(up.sizes() == Shape{2, 6, 18});
  CHECK(largest_difference(
            up.unsqueeze(2),
            conv_transpose2d(x.unsqueeze(2), filter.unsqueeze(2), {},
                             {.stride = {1, 2}, .padding = {0, 1}, .output_padding = {0, 1}, .groups = 2})) == 0);
}

// The reference is float64 on the same numbers. Rounding a result may move it by 2^-8 of itself. In addition there are
// at most 200 additions in float32, each with an error of 2^-24 of the sum of magnitudes, which is at most ten times
// the largest result: the magnitudes of n products of normal numbers add up to about 0.64 n, and the largest of many
// sums exceeds the square root of n. 200 * 10 * 2^-24 < 2^-12.
TEST_CASE("convolutions of bfloat16 and all their gradients are those of float64, rounded once") {
  const auto check = [](const Shape& x_sizes, const Shape& weight_sizes, int64_t out, auto convolve) {
    CAPTURE(to_string(weight_sizes));
    const Shape sizes[] = {x_sizes, weight_sizes, Shape{out}};
    std::vector<Tensor> half, wide;
    for (uint64_t i = 0; i < 3; ++i) {
      half.push_back(normal_input(sizes[i], i + 1).detach().to(kBFloat16).requires_grad_());
      wide.push_back(half.back().detach().to(kFloat64).requires_grad_());
    }
    // The result, and the gradients of input, weight and bias.
    const auto all = [&](const std::vector<Tensor>& in) {
      const Tensor outputs[] = {convolve(in[0], in[1], in[2])};
      const Tensor grad = normal_input(outputs[0].sizes(), 4).detach().to(kBFloat16).to(in[0].dtype());
      std::vector<Tensor> results = autograd::grad(outputs, in, {.grad_outputs = {grad}});
      results.push_back(outputs[0]);
      return results;
    };
    const std::vector<Tensor> found = all(half), expected = all(wide);
    REQUIRE(found.size() == 4);
    for (size_t i = 0; i < 4; ++i) {
      CAPTURE(i);
      REQUIRE(found[i].dtype() == kBFloat16);
      const auto a = found[i].detach().to_vector<double>(), b = expected[i].detach().to_vector<double>();
      REQUIRE(a.size() == b.size());
      double largest = 0, worst = 0;
      for (const double value : b)
        largest = std::max(largest, std::abs(value));
      for (size_t k = 0; k < a.size(); ++k)
        worst = worse(worst, std::abs(a[k] - b[k]) - std::ldexp(std::abs(b[k]), -8) - std::ldexp(largest, -12));
      CHECK(worst <= 0);
    }
  };
  check({2, 16, 9, 7}, {32, 8, 3, 3}, 32, [](const Tensor& x, const Tensor& w, const Tensor& b) {
    return conv2d(x, w, b, {.stride = {2, 1}, .padding = {1, 2}, .groups = 2});
  });
  check({2, 16, 50}, {24, 16, 5}, 24, [](const Tensor& x, const Tensor& w, const Tensor& b) {
    return conv1d(x, w, b, {.padding = 4, .dilation = 2});
  });
  check({16, 50}, {24, 16, 4}, 24,
        [](const Tensor& x, const Tensor& w, const Tensor& b) { return conv1d(x, w, b, {.padding = "same"}); });
}

TEST_CASE("a kernel of one element sees single pixels, those of the padding and of every other step too") {
  const Tensor pixels = normal_input({2, 3, 4, 5}, 1), kernel = normal_input({2, 3, 1, 1}, 2);
  using Two = std::array<int64_t, 2>;
  for (const Two padding : {Two{0, 0}, Two{0, 1}, Two{1, 0}, Two{2, 1}}) {
    for (const Two stride : {Two{1, 1}, Two{1, 2}, Two{2, 1}}) {
      CAPTURE(padding[0]);
      CAPTURE(padding[1]);
      CAPTURE(stride[0]);
      CAPTURE(stride[1]);
      const Tensor x = pixels.detach().requires_grad_(), weight = kernel.detach().requires_grad_();
      const Tensor y = conv2d(x, weight, {}, {.stride = stride, .padding = padding});
      sum(square(y)).backward();
      const Tensor x2 = pixels.detach().requires_grad_(), weight2 = kernel.detach().requires_grad_();
      const Tensor padded = pad(x2, {padding[1], padding[1], padding[0], padding[0]});
      const Tensor seen = padded.slice(2, 0, padded.size(2), stride[0]).slice(3, 0, padded.size(3), stride[1]);
      const Tensor expected = einsum("oc,nchw->nohw", {weight2.view({2, 3}), seen});
      sum(square(expected)).backward();
      REQUIRE(y.sizes() == expected.sizes());
      CHECK(largest_difference(y, expected) < 1e-12);
      CHECK(largest_difference(x.grad(), x2.grad()) < 1e-12);
      CHECK(largest_difference(weight.grad(), weight2.grad()) < 1e-11);
    }
  }
}

TEST_CASE("padding in words: as many zeros as keep the size, the odd one at the end; or none") {
  const Tensor x = tensor(std::vector<double>{1, 2, 3, 4, 5}, {1, 1, 5});
  const auto convolved = [&](const std::vector<double>& kernel, const Conv1dFuncOptions& params) {
    return conv1d(x, tensor(kernel, {1, 1, static_cast<int64_t>(kernel.size())}), {}, params).to_vector<double>();
  };
  CHECK(convolved({1, 10}, {.padding = "same"}) == std::vector<double>{21, 32, 43, 54, 5});
  CHECK(convolved({1, 10, 100}, {.padding = "same"}) == std::vector<double>{210, 321, 432, 543, 54});
  CHECK(convolved({1, 10, 100, 1000}, {.padding = "same", .dilation = 1}) ==
        std::vector<double>{3210, 4321, 5432, 543, 54});
  CHECK(convolved({1, 10, 100, 1000}, {.padding = "same", .dilation = 3}) ==
        std::vector<double>{300, 410, 520, 30, 41});
  CHECK(convolved({1, 10}, {.padding = "valid"}) == std::vector<double>{21, 32, 43, 54});
  CHECK(conv1d(x, x, {}, {.padding = "same"}).is_contiguous());
  const Tensor image = normal_input({2, 5, 6}, 1).detach();
  const Tensor y = conv2d(image, normal_input({3, 2, 2, 3}, 2).detach(), {}, {.padding = "same", .dilation = {3, 2}});
  CHECK(y.sizes() == Shape{3, 5, 6});
  CHECK(y.is_contiguous());
}

TEST_CASE("what is no convolution is refused with the caller's line") {
  const Tensor x = ones({1, 4, 6});
  const Tensor weight = ones({2, 4, 3});
  CHECK_THROWS_WITH_AS(conv1d(ones({4}), weight),
                       doctest::Contains("conv1d: expected input [N, C, L] or [C, L] and weight [out, C / groups, k], "
                                         "got [4] and [2, 4, 3]"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(conv1d(x, weight, {}, {.groups = 2}), doctest::Contains("conv_test.cpp:"), ShapeError);
  CHECK_THROWS_WITH_AS(conv1d(x, weight, {}, {.groups = 2}),
                       doctest::Contains("conv1d: input [1, 4, 6] has 4 channels, but weight [2, 4, 3] with groups=2 "
                                         "expects 8"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(conv1d(x, weight, {}, {.dilation = 3}), doctest::Contains("smaller than the kernel"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(conv1d(x, weight, {}, {.stride = 0}), doctest::Contains("at least 0, got 0, 1 and 0"),
                       ValueError);
  CHECK_THROWS_WITH_AS(conv1d(x, weight, {}, {.stride = 2, .padding = "same"}),
                       doctest::Contains("padding \"same\" is for a stride of 1, got 2"), ValueError);
  CHECK_THROWS_WITH_AS(conv1d(x, weight, {}, {.padding = "full"}), doctest::Contains("\"valid\", got \"full\""),
                       ValueError);
  CHECK_THROWS_AS(conv2d(x, weight), ShapeError);
  CHECK_THROWS_AS(conv2d(ones({1, 4, 6, 6}), ones({2, 4, 3, 3}), {}, {.groups = 0}), ValueError);
  CHECK_THROWS_AS(conv2d(ones({1, 4, 6, 6}), ones({2, 4, 3, 3}, kFloat64)), DTypeError);

  const Tensor image = ones({1, 2, 4, 4});
  const Tensor filter = ones({2, 3, 3, 3});
  CHECK_THROWS_WITH_AS(conv_transpose2d(image, ones({3, 2, 3, 3})),
                       doctest::Contains("input [1, 2, 4, 4] has 2 channels, but weight [3, 2, 3, 3] expects 3"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(conv_transpose2d(image, filter, ones({2})),
                       doctest::Contains("expected a bias float32 [3], got float32 [2]"), ShapeError);
  CHECK_THROWS_WITH_AS(conv_transpose2d(image, filter, {}, {.output_padding = {0, 1}}),
                       doctest::Contains("below the larger of stride and dilation, got [0, 1]"), ValueError);
  CHECK_THROWS_WITH_AS(conv_transpose2d(image, filter, {}, {.padding = {3, 3}}), doctest::Contains("leaves no result"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(conv_transpose1d(image, filter), doctest::Contains("conv_transpose1d: expected input [N, C, L]"),
                       ShapeError);
}

TEST_CASE("an empty batch is convolved to an empty batch, forward and backward") {
  const Tensor weight = normal_input({2, 3, 3, 3}, 2);
  const Tensor x = ones({0, 2, 4, 4}, kFloat64).requires_grad_();
  const Tensor y = conv_transpose2d(x, weight, normal_input({3}, 1), {.stride = {2, 2}});
  CHECK(y.sizes() == Shape{0, 3, 9, 9});
  y.sum().backward();
  CHECK(x.grad().sizes() == x.sizes());
  CHECK(weight.grad().to_vector<double>() == std::vector<double>(54, 0));
}

namespace {
// Whether the options T can be written as {2, 1}.
template <class T>
concept TakesBraces = requires {
  T{2, 1};
};
}  // namespace

TEST_CASE("braces without names mean what they mean in LibTorch, or do not compile") {
  const Tensor x = arange(0, 2 * 8 * 8, 1, kFloat32).reshape({1, 2, 8, 8});
  const Tensor weight = ones({2, 2, 3, 3});
  const auto alike = [](const Tensor& a, const Tensor& b) { return equal(a, b); };
  // The second brace is the stride: height and width.
  CHECK(alike(avg_pool2d(x, {3, 3}, {1, 2}), avg_pool2d(x, 3, {.stride = {1, 2}})));
  CHECK(alike(avg_pool2d(x, 3, {1, 1}, {1, 0}, false, false),
              avg_pool2d(x, 3, {.stride = 1, .padding = {1, 0}, .count_include_pad = false})));
  CHECK(alike(max_pool2d(x, {3, 3}, {1, 2}), max_pool2d(x, 3, {.stride = {1, 2}})));
  CHECK(alike(max_pool2d(x, 3, 2, 1, {2, 1}, true),
              max_pool2d(x, 3, {.stride = 2, .padding = 1, .dilation = {2, 1}, .ceil_mode = true})));
  CHECK(
      alike(max_pool2d_with_indices(x, 3, {1, 2}).indices, max_pool2d_with_indices(x, 3, {.stride = {1, 2}}).indices));
  CHECK(alike(conv2d(x, weight, {}, {2, 2}), conv2d(x, weight, {}, {.stride = 2})));
  CHECK(alike(conv2d(x, weight, {}, {2, 1}, {0, 1}, {1, 2}),
              conv2d(x, weight, {}, {.stride = {2, 1}, .padding = {0, 1}, .dilation = {1, 2}})));
  CHECK(alike(conv2d(x, weight, {}, 1, "same"), conv2d(x, weight, {}, {.padding = "same"})));
  CHECK(alike(conv_transpose2d(x, weight, {}, {2, 1}, {1, 0}, {1, 0}),
              conv_transpose2d(x, weight, {}, {.stride = {2, 1}, .padding = {1, 0}, .output_padding = {1, 0}})));
  CHECK(alike(conv2d(x, weight, {}, {}), conv2d(x, weight)));

  CHECK_FALSE(TakesBraces<AvgPool2dOptions>);
  CHECK_FALSE(TakesBraces<MaxPool1dOptions>);
  CHECK_FALSE(TakesBraces<Conv1dFuncOptions>);
  CHECK_FALSE(TakesBraces<ConvTranspose2dFuncOptions>);
  CHECK_FALSE(TakesBraces<FoldOptions>);
}

}  // namespace brigade::test::conv_test
