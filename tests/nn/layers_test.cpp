// Linear, convolution, pooling, activations, dropout, flattening, and losses as modules: checks that each passes its
// options to the right function (tests/autograd and tests/kernels check the values).
#include "printed.h"

#include <nn/models.h>

#include <doctest/doctest.h>

#include <cmath>

namespace brigade::test::layers_test {
namespace {
const Tensor kRow = tensor(std::vector<float>{-2, 0.5, 3}, {1, 3});
}  // namespace

TEST_CASE("Linear without features on either side gives nothing, or the bias, and has gradients") {
  const nn::Linear to_none(10, 0), from_none(0, 3);
  const Tensor x = ones({4, 10}).requires_grad_();
  const Tensor none = to_none->forward(x);
  CHECK(none.sizes() == Shape{4, 0});
  const Tensor y = from_none->forward(none);
  CHECK(y.to_vector<float>() == std::vector<float>(12));  // a bias of zeros, as in PyTorch
  y.sum().backward();
  CHECK(x.grad().to_vector<float>() == std::vector<float>(40));
  CHECK(from_none->weight.grad().sizes() == Shape{3, 0});
  CHECK(from_none->bias.grad().to_vector<float>() == std::vector<float>{4, 4, 4});
  CHECK(to_none->weight.grad().sizes() == Shape{0, 10});
  CHECK_THROWS_WITH_AS(nn::Linear(-1, 3), doctest::Contains("must be at least 0, got -1 and 3"), ValueError);
}

TEST_CASE("Linear is x times weight transposed plus bias") {
  nn::Linear linear(2, 1);
  nn::init::constant_(linear->bias, 1);
  {
    const NoGradGuard no_grad;
    linear->weight.copy_(tensor(std::vector<float>{2, 3}, {1, 2}));
  }
  CHECK(floats(linear(tensor(std::vector<float>{1, 1, 0, 2}, {2, 2}))) == std::vector<float>{6, 7});
  nn::Linear by_options({.in_features = 4, .out_features = 2, .bias = false, .dtype = kFloat64});
  CHECK_FALSE(by_options->bias.defined());
  CHECK(by_options(ones({5, 3, 4}, kFloat64)).sizes() == Shape{5, 3, 2});
  CHECK(names_of(by_options->named_parameters()) == std::vector<std::string>{"weight"});
  CHECK_THROWS_AS(linear(ones({1, 3})), ShapeError);
}

TEST_CASE("Conv2d takes its sizes as one number or two") {
  struct Case {
    nn::Conv2d conv;
    Shape weight, result;  // for an input [2, 4, 8, 8]
    const char* text;
  };
  const std::vector<Case> cases = {
      {nn::Conv2d(4, 6, 3), {6, 4, 3, 3}, {2, 6, 6, 6}, "Conv2d(4, 6, kernel_size=[3, 3], stride=[1, 1])"},
      {nn::Conv2d(4, 6, 3, {.stride = 2, .padding = 1}),
       {6, 4, 3, 3},
       {2, 6, 4, 4},
       "Conv2d(4, 6, kernel_size=[3, 3], stride=[2, 2], padding=[1, 1])"},
      {nn::Conv2d(4, 6, {1, 3}, {.stride = {2, 1}, .padding = {0, 1}, .groups = 2, .bias = false}),
       {6, 2, 1, 3},
       {2, 6, 4, 8},
       "Conv2d(4, 6, kernel_size=[1, 3], stride=[2, 1], padding=[0, 1], groups=2, bias=false)"},
      {nn::Conv2d(4, 6, 3, {.dilation = 2}),
       {6, 4, 3, 3},
       {2, 6, 4, 4},
       "Conv2d(4, 6, kernel_size=[3, 3], stride=[1, 1], dilation=[2, 2])"},
      {nn::Conv2d(4, 6, 3, {.stride = {1, 2}, .padding = 1}),
       {6, 4, 3, 3},
       {2, 6, 8, 4},
       "Conv2d(4, 6, kernel_size=[3, 3], stride=[1, 2], padding=[1, 1])"},
  };
  RandomGenerator generator(3);
  const Tensor x = randn({2, 4, 8, 8}, kFloat32, &generator);
  for (const Case& c : cases) {
    CAPTURE(c.text);
    CHECK(c.conv->weight.sizes() == c.weight);
    const Tensor y = c.conv(x);
    CHECK(y.sizes() == c.result);
    CHECK(floats(y) == floats(conv2d(x, c.conv->weight, c.conv->bias, c.conv->options)));
    CHECK(printed(c.conv) == c.text);
  }
  CHECK_THROWS_WITH_AS(nn::Conv2d(3, 4, 3, {.groups = 2}), doctest::Contains("divisible by groups"), ValueError);
  CHECK_THROWS_WITH_AS(nn::Conv2d(3, 4, 3, {.stride = 0}), doctest::Contains("at least 1"), ValueError);
  CHECK_THROWS_WITH_AS(nn::Conv2d(3, 4, 3, {.padding = -1}), doctest::Contains("padding at least 0"), ValueError);
}

TEST_CASE("pooling layers take PyTorch's options, stride being the kernel's size by default") {
  RandomGenerator generator(4);
  const Tensor x = randn({2, 3, 5, 6}, kFloat32, &generator);
  CHECK(floats(nn::MaxPool2d(2)(x)) == floats(max_pool2d(x, 2)));
  CHECK(floats(nn::AvgPool2d(2)(x)) == floats(avg_pool2d(x, 2)));
  CHECK(nn::MaxPool2d(Size2(2, 3))(x).sizes() == Shape{2, 3, 2, 2});
  CHECK(nn::MaxPool2d(2, {.ceil_mode = true})(x).sizes() == Shape{2, 3, 3, 3});
  const AvgPool2dOptions options{.stride = 2, .padding = 1, .count_include_pad = false};
  const Tensor averages = avg_pool2d(x, 3, options);
  CHECK(averages.sizes() == Shape{2, 3, 3, 3});
  CHECK(floats(nn::AvgPool2d(3, options)(x)) == floats(averages));
  CHECK(floats(nn::AvgPool2d(3, {.stride = 2, .padding = 1, .count_include_pad = false})(x)) == floats(averages));
  CHECK(floats(nn::AvgPool2d(3, {.stride = 2, .padding = 1})(x)) != floats(averages));
  CHECK(floats(nn::MaxPool2d({2, 3}, {.stride = {1, 2}, .dilation = {2, 1}})(x)) ==
        floats(max_pool2d(x, {2, 3}, {.stride = {1, 2}, .dilation = {2, 1}})));
  CHECK(printed(nn::MaxPool2d(3, {.stride = 2, .padding = 1})) ==
        "MaxPool2d(kernel_size=[3, 3], stride=[2, 2], padding=[1, 1], dilation=[1, 1], ceil_mode=false)");
  CHECK_THROWS_WITH_AS(nn::MaxPool2d(0), doctest::Contains("at least 1"), ValueError);
}

namespace {
template <class Options>
concept TakesNamelessBraces = requires {
  Options{2, 1};
};
}  // namespace

TEST_CASE("options of convolutions and pools are written by name: LibTorch reads {2, 1} as a stride") {
  CHECK_FALSE(TakesNamelessBraces<nn::Conv1dOptions>);
  CHECK_FALSE(TakesNamelessBraces<nn::Conv2dOptions>);
  CHECK_FALSE(TakesNamelessBraces<nn::ConvTranspose1dOptions>);
  CHECK_FALSE(TakesNamelessBraces<nn::ConvTranspose2dOptions>);
  CHECK_FALSE(TakesNamelessBraces<nn::MaxPool2dOptions>);
  CHECK_FALSE(TakesNamelessBraces<nn::AvgPool1dOptions>);
}

TEST_CASE("activations compute what their functions do, and print their options") {
  CHECK(floats(nn::ReLU()(kRow)) == floats(relu(kRow)));
  CHECK(floats(nn::LeakyReLU(0.2)(kRow)) == floats(leaky_relu(kRow, 0.2)));
  CHECK(floats(nn::GELU()(kRow)) == floats(gelu(kRow)));
  CHECK(floats(nn::GELU(GeluApproximation::Tanh)(kRow)) == floats(gelu(kRow, GeluApproximation::Tanh)));
  CHECK(floats(nn::Tanh()(kRow)) == floats(brigade::tanh(kRow)));
  CHECK(floats(nn::Sigmoid()(kRow)) == floats(sigmoid(kRow)));
  CHECK(floats(nn::SiLU()(kRow)) == floats(silu(kRow)));
  CHECK(floats(nn::Softmax(1)(kRow)) == floats(softmax(kRow, 1)));
  CHECK(floats(nn::LogSoftmax(-1)(kRow)) == floats(log_softmax(kRow, 1)));
  CHECK(printed(nn::LeakyReLU(0.2)) == "LeakyReLU(negative_slope=0.2)");
  CHECK(printed(nn::Softmax(-1)) == "Softmax(dim=-1)");
}

TEST_CASE("Dropout drops in training only") {
  manual_seed(1);
  nn::Dropout dropout(0.25);
  const auto values = floats(dropout(ones({4000})));
  int dropped = 0;
  for (const float v : values) {
    CHECK((v == 0 || v == doctest::Approx(4.0 / 3)));
    dropped += v == 0 ? 1 : 0;
  }
  CHECK(std::abs(dropped - 1000) < 150);  // 5.5 standard deviations
  dropout->eval();
  CHECK(floats(dropout(ones({4}))) == std::vector<float>(4, 1));
  CHECK(printed(dropout) == "Dropout(p=0.25)");
  CHECK_THROWS_WITH_AS(nn::Dropout(1.5), doctest::Contains("between 0 and 1, but got 1.5"), ValueError);
}

TEST_CASE("Embedding: a table with a padding row that stays zero; sparse gradients are refused in words") {
  manual_seed(3);
  nn::Embedding words({.num_embeddings = 400, .embedding_dim = 5, .padding_idx = -400});
  CHECK(printed(words) == "Embedding(400, 5, padding_idx=0)");
  double sum = 0, squares = 0;
  const auto values = floats(words->weight);
  for (const float v : values) {
    sum += v;
    squares += static_cast<double>(v) * v;
  }
  CHECK(std::abs(sum / 1995) < 0.1);  // 4.5 standard deviations
  CHECK(std::abs(squares / 1995 - 1) < 0.15);
  CHECK(floats(words->weight.select(0, 0)) == std::vector<float>(5, 0));
  const Tensor y = words(tensor<int64_t>({0, 7, 7}));
  CHECK(y.sizes() == Shape{3, 5});
  CHECK(floats(y.select(0, 2)) == floats(words->weight.select(0, 7)));
  y.sum().backward();
  CHECK(floats(words->weight.grad().select(0, 0)) == std::vector<float>(5, 0));
  CHECK(floats(words->weight.grad().select(0, 7)) == std::vector<float>(5, 2));
  CHECK(floats(words->weight.grad().select(0, 8)) == std::vector<float>(5, 0));
  nn::Embedding shared({.num_embeddings = 3, .embedding_dim = 1, .scale_grad_by_freq = true});
  CHECK(printed(shared) == "Embedding(3, 1, scale_grad_by_freq=True)");
  shared(tensor<int64_t>({1, 2, 1})).sum().backward();
  CHECK(shared->weight.grad().to_vector<float>() == std::vector<float>{0, 1, 1});
  CHECK_THROWS_WITH_AS(nn::Embedding({.num_embeddings = 4, .embedding_dim = 2, .sparse = true}),
                       doctest::Contains("there are no sparse gradients"), ValueError);
  CHECK_THROWS_WITH_AS(nn::Embedding({.num_embeddings = 4, .embedding_dim = 2, .padding_idx = 4}),
                       doctest::Contains("padding_idx 4 is no row of 4"), ValueError);
  CHECK_THROWS_WITH_AS(nn::Embedding(0, 2), doctest::Contains("must be at least 1, got 0 and 2"), ValueError);
  CHECK_THROWS_WITH_AS(words(tensor<int64_t>({400})), doctest::Contains("index 400 at position 0"), IndexError);
}

TEST_CASE("Flatten keeps the batch, Identity everything") {
  const Tensor x = ones({2, 3, 4, 5});
  CHECK(nn::Flatten()(x).sizes() == Shape{2, 60});
  CHECK(nn::Flatten(0, 1)(x).sizes() == Shape{6, 4, 5});
  CHECK(nn::Identity()(x).is_same(x));
}

TEST_CASE("losses reduce as requested") {
  const Tensor logits = tensor(std::vector<float>{0, 0, 0, 0, 5, 1, 2, 3}, {2, 4});
  const Tensor target = tensor<int64_t>({2, 0});
  CHECK(nn::CrossEntropyLoss()(logits, target).item() == doctest::Approx(cross_entropy(logits, target).item()));
  CHECK(nn::CrossEntropyLoss(Reduction::Mean, 0)(logits, target).item() == doctest::Approx(std::log(4.0)));
  CHECK(nn::CrossEntropyLoss(Reduction::None)(logits, target).sizes() == Shape{2});
  const Tensor zero = zeros({1, 3});
  CHECK(nn::MSELoss()(kRow, zero).item() == doctest::Approx(13.25 / 3));
  CHECK(nn::MSELoss(Reduction::Sum)(kRow, zero).item() == doctest::Approx(13.25));
  CHECK(nn::L1Loss()(kRow, zero).item() == doctest::Approx(5.5 / 3));
  CHECK(nn::L1Loss(Reduction::Sum)(kRow, zero).item() == doctest::Approx(5.5));
  CHECK(nn::BCEWithLogitsLoss()(zero, zero).item() == doctest::Approx(std::log(2.0)));
  CHECK(nn::BCEWithLogitsLoss(Reduction::Sum)(zero, zero).item() == doctest::Approx(3 * std::log(2.0)));
}

}  // namespace brigade::test::layers_test
