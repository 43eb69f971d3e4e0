// Every layer and loss of nn on the device, compared with the CPU: results, gradients, and buffers, in every floating
// dtype. A layer in the headers without a row here fails the test.
#include "agreement.h"

#include <brigade/autograd/functional.h>
#include <brigade/nn/nn.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>
#include <set>
#include <sstream>

namespace brigade::test::nn_test {
namespace {

struct Layer {
  std::function<nn::AnyModule()> make;
  Tensor x;  // indices are used as is; otherwise float64, differentiated
  double roundings = 2;
};

// Magnitudes in 0.3 .. 1.5, of either sign.
Tensor values(const Shape& sizes, uint64_t seed = 1) {
  RandomGenerator generator(seed);
  const Tensor x = rand(sizes, {kFloat64}, &generator);
  return (x * 1.2 + 0.3) * sign(rand(sizes, {kFloat64}, &generator) - 0.5);
}

template <class H, class... Arguments>
std::function<nn::AnyModule()> layer(Arguments... arguments) {
  return [=] { return nn::AnyModule(H(arguments...)); };
}

// MultiheadAttention takes three tensors and returns two.
struct SelfAttentionImpl : nn::Module {
  explicit SelfAttentionImpl(bool with_weights) : need_weights(with_weights) {
    attention = register_module(
        "attention", nn::MultiheadAttention({.embed_dim = 8, .num_heads = 2, .dropout = 0.2, .batch_first = true}));
  }
  Tensor forward(const Tensor& x) {
    const auto [y, weights] = attention(x, x, x, nn::AttentionMasks{.need_weights = need_weights, .is_causal = true});
    return weights.defined() ? cat({y, matmul(weights, x)}, -1) : y;
  }
  bool need_weights;
  nn::MultiheadAttention attention{nullptr};
};
BRIGADE_MODULE(SelfAttention);

std::vector<Layer> layers() {
  const auto leaf = [](const Shape& sizes) { return values(sizes).requires_grad_(); };
  const Tensor words = tensor(std::vector<int64_t>{3, 0, 1, 3, 5, 3}, {2, 3});
  const Shape image{2, 4, 6, 7};
  using namespace nn;
  return {
      {layer<Linear>(5, 7), leaf({3, 2, 5})},
      {layer<Linear>(LinearOptions{.in_features = 5, .out_features = 7, .bias = false}), leaf({3, 5})},
      {layer<Conv2d>(4, 6, 3), leaf(image)},
      {layer<Conv2d>(4, 6, Size2(3, 2), Conv2dOptions{.stride = {2, 1}, .padding = 1, .groups = 2, .bias = false}),
       leaf(image)},
      {layer<Conv2d>(4, 3, 2, Conv2dOptions{.dilation = 2}), leaf(image)},
      {layer<Conv1d>(4, 6, 3, Conv1dOptions{.stride = 2, .padding = 1, .groups = 2}), leaf({2, 4, 9})},
      {layer<Conv1d>(4, 3, 4, Conv1dOptions{.padding = "same", .bias = false}), leaf({4, 9})},
      {layer<ConvTranspose1d>(4, 6, 3, ConvTranspose1dOptions{.stride = 2, .output_padding = 1}), leaf({2, 4, 5})},
      {layer<ConvTranspose2d>(4, 6, Size2(3, 2), ConvTranspose2dOptions{.stride = 2, .padding = 1, .groups = 2}),
       leaf(image), 4},
      {layer<BatchNorm1d>(5), leaf({8, 5}), 4},
      {layer<BatchNorm1d>(5, BatchNormOptions{.momentum = std::nullopt}), leaf({4, 5, 3}), 4},
      {layer<BatchNorm1d>(5, BatchNormOptions{.affine = false, .track_running_stats = false}), leaf({8, 5}), 4},
      {layer<BatchNorm2d>(4, BatchNormOptions{.eps = 1e-3, .momentum = 0.3}), leaf(image), 4},
      {layer<LayerNorm>(6), leaf({4, 6}), 4},
      {layer<LayerNorm>(Shape{3, 4}, LayerNormOptions{.eps = 1e-3, .bias = false}), leaf({5, 3, 4}), 4},
      {layer<LayerNorm>(6, LayerNormOptions{.elementwise_affine = false}), leaf({4, 6}), 4},
      {layer<RMSNorm>(6), leaf({4, 6})},
      {layer<RMSNorm>(Shape{3, 4}, RMSNormOptions{.eps = 1e-3, .elementwise_affine = false}), leaf({5, 3, 4})},
      {layer<Dropout>(0.3), leaf({9, 11})},
      {layer<GroupNorm>(2, 4), leaf(image), 8},
      {layer<InstanceNorm1d>(4), leaf({2, 4, 9}), 8},
      {layer<InstanceNorm2d>(4, InstanceNormOptions{.affine = true, .track_running_stats = true}), leaf(image), 8},
      {layer<InstanceNorm3d>(2), leaf({2, 2, 3, 2, 2}), 8},
      {layer<BatchNorm3d>(2), leaf({2, 2, 3, 2, 2}), 8},
      {layer<Embedding>(6, 5), words},
      {layer<Embedding>(EmbeddingOptions{.num_embeddings = 6, .embedding_dim = 5, .padding_idx = 3}), words},
      {layer<MaxPool2d>(2), leaf(image)},
      {layer<MaxPool2d>(3, MaxPool2dOptions{.stride = 2, .padding = 1, .ceil_mode = true}), leaf(image)},
      {layer<AvgPool2d>(2), leaf(image)},
      {layer<AvgPool2d>(3, AvgPool2dOptions{.stride = 2, .padding = 1, .count_include_pad = false}), leaf(image)},
      {layer<MaxPool2d>(2, MaxPool2dOptions{.stride = 1, .dilation = 2}), leaf(image)},
      {layer<MaxPool1d>(3, MaxPool1dOptions{.stride = 2, .padding = 1}), leaf({2, 3, 9})},
      {layer<AvgPool1d>(3, AvgPool1dOptions{.padding = 1, .count_include_pad = false}), leaf({3, 9})},
      {layer<AdaptiveAvgPool1d>(4), leaf({2, 3, 9})},
      {layer<AdaptiveMaxPool1d>(4), leaf({2, 3, 9})},
      {layer<AdaptiveAvgPool2d>(PoolOutputSize(4, std::nullopt)), leaf(image)},
      {layer<AdaptiveMaxPool2d>(PoolOutputSize(2, 3)), leaf(image)},
      {layer<Unfold>(Size2(3, 2), FoldOptions{.padding = 1, .stride = {1, 2}}), leaf(image)},
      {layer<Fold>(Size2(4, 5), 2), leaf({2, 8, 12})},
      {layer<PixelShuffle>(2), leaf({2, 4, 3, 2})},
      {layer<PixelUnshuffle>(2), leaf({2, 3, 4, 6})},
      {layer<Upsample>(UpsampleOptions{.size = 7, .mode = InterpolateMode::Linear}), leaf({2, 3, 4})},
      {layer<Upsample>(UpsampleOptions{.scale_factor = 1.5, .mode = InterpolateMode::Bicubic}), leaf(image)},
      {layer<Upsample>(UpsampleOptions{.scale_factor = 2.0}), leaf(image)},
      {layer<Upsample>(UpsampleOptions{.size = Size2(5, 9), .mode = InterpolateMode::Bilinear}), leaf(image)},
      {layer<ReLU>(), leaf({4, 9})},
      {layer<LeakyReLU>(0.2), leaf({4, 9})},
      {layer<GELU>(), leaf({4, 9})},
      {layer<GELU>(GeluApproximation::Tanh), leaf({4, 9})},
      {layer<Tanh>(), leaf({4, 9})},
      {layer<Sigmoid>(), leaf({4, 9})},
      {layer<SiLU>(), leaf({4, 9})},
      {layer<ELU>(0.7), leaf({4, 9})},
      {layer<SELU>(), leaf({4, 9})},
      {layer<CELU>(0.7), leaf({4, 9})},
      {layer<Softplus>(2.0, 1.5), leaf({4, 9})},
      {layer<Hardtanh>(-0.5, 0.8), leaf({4, 9})},
      {layer<ReLU6>(), leaf({4, 9})},
      {layer<Hardsigmoid>(), leaf({4, 9})},
      {layer<Hardswish>(), leaf({4, 9})},
      {layer<Mish>(), leaf({4, 9})},
      {layer<Softsign>(), leaf({4, 9})},
      {layer<LogSigmoid>(), leaf({4, 9})},
      {layer<Softshrink>(0.3), leaf({4, 9})},
      {layer<Hardshrink>(0.3), leaf({4, 9})},
      {layer<PReLU>(), leaf({4, 9})},
      {layer<PReLU>(PReLUOptions{.num_parameters = 4}), leaf(image)},
      {layer<GLU>(), leaf({4, 10})},
      {layer<Softmax>(-1), leaf({4, 9})},
      {layer<LogSoftmax>(0), leaf({4, 9})},
      {layer<Flatten>(), leaf(image)},
      {layer<Unflatten>(1, Shape{2, -1}), leaf(image)},
      {layer<Identity>(), leaf({4, 9})},
      {layer<SelfAttention>(false), leaf({2, 5, 8}), 16},
      {layer<SelfAttention>(true), leaf({2, 5, 8}), 16},
      {layer<TransformerEncoderLayer>(TransformerEncoderLayerOptions{.d_model = 8, .nhead = 2, .dim_feedforward = 12}),
       leaf({5, 2, 8}), 16},
      {layer<TransformerEncoder>(
           TransformerEncoderLayerOptions{.d_model = 8, .nhead = 2, .dim_feedforward = 12, .norm_first = true}, 2,
           true),
       leaf({5, 2, 8}), 32},
      {layer<GPTBlock>(GPTOptions{.n_layer = 1, .n_head = 2, .n_embd = 8, .dropout = 0.1}), leaf({2, 5, 8}), 16},
      {layer<GPT>(GPTOptions{.vocab_size = 6, .block_size = 4, .n_layer = 2, .n_head = 2, .n_embd = 8}), words, 32},
      {[] { return AnyModule(Sequential(Linear(5, 8), BatchNorm1d(8), Tanh(), Dropout(0.2), Linear(8, 3))); },
       leaf({8, 5}), 8},
  };
}

struct Loss {
  std::string name;
  std::function<Tensor(const Tensor&, const Tensor&, Reduction)> compute;
  Tensor x, target;
};

template <class H>
Tensor by_module(const Tensor& x, const Tensor& target, Reduction reduction) {
  return H(reduction)(x, target);
}

std::vector<Loss> losses() {
  const Tensor x = values({5, 4}).requires_grad_();
  const Tensor target = abs(values({5, 4}, 2)).detach().requires_grad_();
  const Tensor classes = tensor<int64_t>({3, 0, -100, 1, 3});
  const Tensor labels = sign(values({5, 4}, 3)).detach();
  const auto divergence = [](const Tensor& log_probs, const Tensor& z, Reduction reduction) {
    return nn::KLDivLoss(static_cast<KLDivReduction>(reduction))(log_probs, z);
  };
  const auto triplet = [](const Tensor& anchor, const Tensor& z, Reduction reduction) {
    return nn::TripletMarginLoss(TripletMarginLossOptions{.reduction = reduction})(anchor, z, z + 0.5);
  };
  const auto cosine = [](const Tensor& a, const Tensor& z, Reduction reduction) {
    return nn::CosineEmbeddingLoss(0.1, reduction)(a, a * a + 1.0, z.select(1, 0));
  };
  const auto ranking = [](const Tensor& a, const Tensor& z, Reduction reduction) {
    return nn::MarginRankingLoss(0.1, reduction)(a, a * 0.5, z);
  };
  const auto gaussian = [](const Tensor& a, const Tensor& z, Reduction reduction) {
    return nn::GaussianNLLLoss(GaussianNLLLossOptions{.reduction = reduction})(a, z, ones_like(z));
  };
  return {
      {"CrossEntropyLoss", by_module<nn::CrossEntropyLoss>, x, classes},
      {"NLLLoss", by_module<nn::NLLLoss>, x, classes},
      {"BCELoss",
       [](const Tensor& a, const Tensor& z, Reduction reduction) {
         return nn::BCELoss(reduction)(sigmoid(a), sigmoid(z));
       },
       x, target},
      {"SmoothL1Loss", by_module<nn::SmoothL1Loss>, x, target},
      {"HuberLoss", by_module<nn::HuberLoss>, x, target},
      {"KLDivLoss", divergence, x, target},
      {"HingeEmbeddingLoss",
       [](const Tensor& a, const Tensor& z, Reduction reduction) { return nn::HingeEmbeddingLoss(1, reduction)(a, z); },
       x, labels},
      {"MarginRankingLoss", ranking, x, labels},
      {"CosineEmbeddingLoss", cosine, x, labels},
      {"SoftMarginLoss", by_module<nn::SoftMarginLoss>, x, labels},
      {"TripletMarginLoss", triplet, x, target},
      {"PoissonNLLLoss",
       [](const Tensor& a, const Tensor& z, Reduction reduction) {
         return nn::PoissonNLLLoss(PoissonNLLLossOptions{.reduction = reduction})(a, z);
       },
       x, target},
      {"GaussianNLLLoss", gaussian, x, target},
      {"BCEWithLogitsLoss", by_module<nn::BCEWithLogitsLoss>, x, target},
      {"MSELoss", by_module<nn::MSELoss>, x, target},
      {"L1Loss", by_module<nn::L1Loss>, x, target},
  };
}

// The compared tensors, by name.
using Outcome = nn::Named<Tensor>;

Tensor cotangent_of(const Tensor& y) { return leaf_like(values(y.sizes(), 9), y.dtype(), y.device()); }

// Runs one training and one evaluation pass, with the same parameters and random numbers on every device.
Outcome run(const Layer& row, DType dtype, Device device) {
  manual_seed(5);
  const nn::AnyModule module = row.make();
  module->to(dtype);
  module->to(device);
  Outcome outcome;
  for (const bool training : {true, false}) {
    const std::string when = training ? "training: " : "evaluation: ";
    module->train(training);
    module->zero_grad();
    const Tensor x = leaf_like(row.x, dtype, device);
    manual_seed(6);
    const Tensor y = module(x);
    y.backward({.gradient = cotangent_of(y)});
    outcome.emplace_back(when + "result", y.detach());
    if (x.requires_grad()) outcome.emplace_back(when + "gradient of the input", x.grad());
    for (const auto& [name, parameter] : module->named_parameters())
      outcome.emplace_back(when + "gradient of " + name, parameter.grad());
    for (const auto& [name, buffer] : module->named_buffers())
      outcome.emplace_back(when + name, buffer.clone());
  }
  return outcome;
}

Outcome run(const Loss& row, Reduction reduction, DType dtype, Device device) {
  const Tensor x = leaf_like(row.x, dtype, device);
  const Tensor target = leaf_like(row.target, dtype, device);
  const Tensor loss = row.compute(x, target, reduction);
  loss.backward({.gradient = cotangent_of(loss)});
  Outcome outcome{{"loss", loss.detach()}, {"gradient of the input", x.grad()}};
  if (target.requires_grad()) outcome.emplace_back("gradient of the target", target.grad());
  return outcome;
}

void compare(const Outcome& there, const Outcome& here, DType dtype, double roundings) {
  REQUIRE(there.size() == here.size());
  for (size_t i = 0; i < here.size(); ++i) {
    const auto& [what, expected] = here[i];
    CAPTURE(what);
    REQUIRE(there[i].first == what);
    REQUIRE(there[i].second.defined());
    CHECK(there[i].second.device() == kDevice);
    CHECK(disagreement(there[i].second, expected, dtype, roundings) <= 1);
  }
}

}  // namespace

TEST_CASE("every layer gives on the device what it gives on the CPU, in training and in evaluation") {
  for (const Layer& row : layers()) {
    std::ostringstream text;
    text << *row.make();
    const std::string printed = text.str();
    CAPTURE(printed);
    for (const DType dtype : kFloatingDTypes) {
      const std::string in = name(dtype);
      CAPTURE(in);
      compare(run(row, dtype, kDevice), run(row, dtype, Device()), dtype, row.roundings);
    }
  }
}

TEST_CASE("every loss gives on the device what it gives on the CPU, however it is reduced") {
  for (const Loss& row : losses()) {
    CAPTURE(row.name);
    for (const Reduction reduction : {Reduction::None, Reduction::Mean, Reduction::Sum}) {
      CAPTURE(static_cast<int>(reduction));
      for (const DType dtype : kFloatingDTypes) {
        const std::string in = name(dtype);
        CAPTURE(in);
        compare(run(row, reduction, dtype, kDevice), run(row, reduction, dtype, Device()), dtype, 2);
      }
    }
  }
}

TEST_CASE("no layer is missing from the tables") {
  std::set<std::string> covered{"ModuleList", "ModuleDict", "ParameterList", "ParameterDict"};  // never called
  covered.insert("MultiheadAttention");                                                         // used in SelfAttention
  for (const Layer& row : layers())
    covered.insert(row.make()->name());
  for (const Loss& row : losses())
    covered.insert(row.name);
  const std::regex declaration("^(?:BRIGADE_MODULE\\((\\w+)\\)|class (\\w+) : public ModuleHolder<)");
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(BRIGADE_SOURCE_DIR) / "nn")) {
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      std::smatch match;
      if (!std::regex_search(line, match, declaration)) continue;
      const std::string layer = match[1].matched ? match[1] : match[2];
      ++found;
      CHECK_MESSAGE(covered.contains(layer), layer << " of " << entry.path().filename().string() << " is in no table");
    }
  }
  CHECK(found > 20);
}

}  // namespace brigade::test::nn_test
