// A whole training step of modules, loss and optimizer as one CUDA graph.
#include "on_device.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/cuda/graph.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>

namespace brigade::test::graph_step_test {

namespace {

// Convolution, batch norm, pooling, layer norm, dropout, attention that drops as well, a loss over classes, SGD with
// momentum.
struct Training {
  nn::Conv2d conv{nullptr};
  nn::BatchNorm2d norm{nullptr};
  nn::Linear out{nullptr};
  std::unique_ptr<optim::SGD> optimizer;
  Tensor x = zeros({6, 2, 7, 7}).to(kDevice);
  Tensor target = zeros({6}, kInt64).to(kDevice);
  Tensor loss = zeros({}).to(kDevice);

  Training() {
    manual_seed(9);
    conv = nn::Conv2d(2, 4, 3);
    norm = nn::BatchNorm2d(4);
    out = nn::Linear(16, 3);
    std::vector<Tensor> parameters;
    for (nn::Module* const module : std::vector<nn::Module*>{conv.get(), norm.get(), out.get()}) {
      module->to(kDevice);
      for (const Tensor& parameter : module->parameters())
        parameters.push_back(parameter);
    }
    optimizer = std::make_unique<optim::SGD>(parameters, optim::SGDOptions{.lr = 0.05, .momentum = 0.9});
  }

  void step() {
    optimizer->zero_grad();
    const Tensor features = max_pool2d(relu(norm(conv(x))), 2).flatten(1);
    const Tensor normed = dropout(layer_norm(features, {16}), 0.2).unsqueeze(0);
    const Tensor mixed = scaled_dot_product_attention(normed, normed, normed, {}, 0.25).squeeze(0);
    const Tensor now = cross_entropy(out(mixed), target);
    now.backward();
    optimizer->step();
    kernels::copy(loss, now.detach());
  }
  void set_batch(int i) {
    kernels::copy(x, numbers({6, 2, 7, 7}, kFloat32, static_cast<uint64_t>(i + 1)));
    kernels::copy(target, tensor<int64_t>({i % 3, 1, 2, (i + 1) % 3, 0, 2}));
  }
  std::vector<double> state() {
    std::vector<double> all{loss.item()};
    for (nn::Module* const module : std::vector<nn::Module*>{conv.get(), norm.get(), out.get()}) {
      for (const auto& list : {module->parameters(), module->buffers()}) {
        for (const Tensor& tensor : list) {
          const auto values = tensor.to_vector<double>();
          all.insert(all.end(), values.begin(), values.end());
        }
      }
    }
    return all;
  }
};

}  // namespace

TEST_CASE("replays of a captured training step leave the parameters that the steps by themselves leave, to the bit") {
  constexpr int kWarmUp = 2;
  constexpr int kSteps = 7;
  Training plain;
  std::vector<std::vector<double>> expected;
  for (int i = 0; i < kSteps; ++i) {
    plain.set_batch(i);
    plain.step();
    expected.push_back(plain.state());
  }
  Training captured;
  cuda::Graph graph;
  for (int i = 0; i < kWarmUp; ++i) {
    captured.set_batch(i);
    captured.step();
    CHECK(captured.state() == expected[static_cast<size_t>(i)]);
  }
  graph.capture([&] { captured.step(); });
  for (int i = kWarmUp; i < kSteps; ++i) {
    captured.set_batch(i);
    graph.replay();
    CAPTURE(i);
    CHECK(captured.state() == expected[static_cast<size_t>(i)]);
  }
  CHECK(expected.front()[0] != expected.back()[0]);
}

}  // namespace brigade::test::graph_step_test
