// Every kind of layer with parameters under autocast: it runs, and its gradients are float32 and near
// those without.
#include <brigade/amp/autocast.h>
#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>

#include <doctest/doctest.h>

#include <cmath>

namespace brigade::test::layers_test {
using amp::autocast;
using nn::AnyModule;

namespace {

struct Layer {
  std::string name;
  AnyModule module;
  Shape sizes;              // of the input
  DType lower = kBFloat16;  // of the result under autocast, in that dtype; float32 where nothing is cast
};

std::vector<Layer> layers() {
  const Shape row{2, 4}, sequence{2, 4, 6}, image{2, 4, 5, 5};
  return {
      {"Linear", nn::Linear(4, 3), row},
      {"Conv1d", nn::Conv1d(4, 3, 3), sequence},
      {"Conv2d", nn::Conv2d(4, 3, 3), image},
      {"ConvTranspose1d", nn::ConvTranspose1d(4, 3, 3), sequence},
      {"ConvTranspose2d", nn::ConvTranspose2d(4, 3, 3), image},
      {"PReLU", nn::PReLU({.num_parameters = 4}), row},
      {"BatchNorm1d", nn::BatchNorm1d(4), row, kFloat32},
      {"BatchNorm2d", nn::BatchNorm2d(4), image, kFloat32},
      {"LayerNorm", nn::LayerNorm(4), row, kFloat32},
      {"RMSNorm", nn::RMSNorm(4), row, kFloat32},
      {"GroupNorm", nn::GroupNorm(2, 4), image, kFloat32},
      // The residual connection's other side stays in float32.
      {"TransformerEncoderLayer",
       nn::TransformerEncoderLayer({.d_model = 4,
                                    .nhead = 2,
                                    .dim_feedforward = 8,
                                    .dropout = 0,
                                    .activation = nn::TransformerActivation::GELU}),
       {3, 2, 4},
       kFloat32},
      {"GPTBlock",
       nn::GPTBlock(nn::GPTOptions{.block_size = 4, .n_head = 2, .n_embd = 4, .dropout = 0}),
       {2, 3, 4},
       kFloat32},
  };
}

std::vector<std::vector<double>> gradients_of(const AnyModule& module) {
  std::vector<std::vector<double>> gradients;
  for (const Tensor& parameter : module->parameters()) {
    REQUIRE(parameter.grad().defined());
    CHECK(parameter.grad().dtype() == kFloat32);
    gradients.push_back(parameter.grad().to_vector<double>());
  }
  return gradients;
}

// Multiplies the results by random weights before the sum, since plain sums over normalized values would be 0.
void backward(const Tensor& y) {
  RandomGenerator generator(5);
  (y.to(kFloat32) * randn(y.sizes(), kFloat32, &generator)).sum().backward();
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  return std::sqrt(difference) / std::max(std::sqrt(size), 0.05);
}

}  // namespace

TEST_CASE("layers run under autocast, from float32 and from the lower dtype, with gradients near those without") {
  for (const DType dtype : {kBFloat16, kFloat16}) {
    manual_seed(3);
    for (const Layer& layer : layers()) {
      CAPTURE(layer.name);
      CAPTURE(std::string(name(dtype)));
      RandomGenerator generator(7);
      const Tensor x = randn(layer.sizes, kFloat32, &generator).to(dtype).to(kFloat32);
      backward(layer.module(x));
      const auto expected = gradients_of(layer.module);
      for (const bool from_lower : {false, true}) {
        CAPTURE(from_lower);
        layer.module->zero_grad();
        Tensor y;
        {
          const autocast region(kCPU, dtype);
          y = layer.module(from_lower ? x.to(dtype) : x);
        }
        const bool casts = from_lower || layer.lower != kFloat32;
        CHECK(y.dtype() == (casts ? dtype : kFloat32));
        backward(y);
        const auto found = gradients_of(layer.module);
        REQUIRE(found.size() == expected.size());
        for (size_t i = 0; i < found.size(); ++i)
          CHECK(distance(found[i], expected[i]) < (dtype == kBFloat16 ? 0.05 : 0.01));
      }
    }
  }
}

TEST_CASE("a language model trains under autocast, its tied weight cast once") {
  manual_seed(3);
  const nn::GPT model({.vocab_size = 7, .block_size = 4, .n_layer = 1, .n_head = 2, .n_embd = 4, .dropout = 0});
  const Tensor tokens = zeros({2, 4}, kInt64);
  Tensor loss;
  {
    const autocast region(kCPU, kBFloat16);
    const Tensor logits = model(tokens);
    CHECK(logits.dtype() == kBFloat16);
    loss = cross_entropy(logits.reshape({8, 7}), tokens.reshape({8}));
    CHECK(loss.dtype() == kFloat32);
    // The weights of the head and of four projections, and four biases.
    CHECK(amp::autocast_cache_size() == 9);
  }
  loss.backward();
  for (const Tensor& parameter : model->parameters())
    CHECK(parameter.grad().dtype() == kFloat32);
}

TEST_CASE("attention with a matrix of weights, and one with masks, run under autocast") {
  manual_seed(3);
  const nn::MultiheadAttention attention(4, 2);
  const Tensor x = ones({3, 2, 4});
  const autocast region(kCPU, kFloat16);
  for (const bool weights : {true, false}) {
    for (const bool causal : {true, false}) {
      const Tensor mask = causal ? Tensor() : zeros({3, 3}, kBool);
      const nn::AttentionResult result =
          attention(x, x, x, nn::AttentionMasks{.need_weights = weights, .attn_mask = mask, .is_causal = causal});
      CHECK(result.output.dtype() == kFloat16);
      CHECK(result.weights.defined() == weights);
    }
  }
}

}  // namespace brigade::test::layers_test
