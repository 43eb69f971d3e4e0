// A complete training step of modules, loss, and optimizer as one CUDA graph.
#include "on_device.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/cuda/graph.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>
#include "../../core/error_of.h"

#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace brigade::test::graph_step_test {
namespace {

enum class Mover : uint8_t { UsualSgd, Sgd, Adam, AdamW, UsualAdamW, NAdam };

// Convolution, batch norm, pooling, layer norm, dropout, attention with dropout, a classification loss, and an
// optimizer.
struct Training {
  nn::Conv2d conv{nullptr};
  nn::BatchNorm2d norm{nullptr};
  nn::Linear out{nullptr};
  std::unique_ptr<optim::Optimizer> optimizer;
  Tensor x = zeros({6, 2, 7, 7}).to(kDevice);
  Tensor target = zeros({6}, kInt64).to(kDevice);
  Tensor loss = zeros({}).to(kDevice);

  explicit Training(Mover mover) {
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
    switch (mover) {
      case Mover::UsualSgd: use<optim::SGD>(parameters, optim::SGDOptions{.lr = 0.05, .momentum = 0.9}); break;
      case Mover::Sgd:
        use<optim::SGD>(parameters, optim::SGDOptions{.lr = 0.05, .momentum = 0.9, .capturable = true});
        break;
      case Mover::Adam:
        use<optim::Adam>(parameters, optim::AdamOptions{.lr = 0.01, .weight_decay = 0.1, .capturable = true});
        break;
      case Mover::AdamW:
        use<optim::AdamW>(parameters, optim::AdamWOptions{.lr = 0.01, .amsgrad = true, .capturable = true});
        break;
      case Mover::UsualAdamW: use<optim::AdamW>(parameters, optim::AdamWOptions{.lr = 0.01, .amsgrad = true}); break;
      case Mover::NAdam: use<optim::NAdam>(parameters, optim::NAdamOptions{.lr = 0.01}); break;
    }
  }

  template <class O, class Options>
  void use(const std::vector<Tensor>& parameters, const Options& options) {
    optimizer = std::make_unique<O>(parameters, options);
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

namespace {

// The schedule changes the learning rate between replays, too.
void check_schedule(Mover mover, Mover captured_by) {
  CAPTURE(static_cast<int>(captured_by));
  const auto run = [](Mover by, bool captures) {
    Training training(by);
    optim::StepLR schedule(*training.optimizer, 1, 0.5);
    cuda::Graph graph;
    std::vector<std::vector<double>> states;
    for (int i = 0; i < 6; ++i) {
      training.set_batch(i);
      if (captures && i == 2) graph.capture([&] { training.step(); });
      if (captures && i >= 2) {
        graph.replay();
      } else {
        training.step();
      }
      schedule.step();
      states.push_back(training.state());
    }
    return states;
  };
  const auto expected = run(mover, false);
  CHECK(run(captured_by, true) == expected);
  CHECK(run(captured_by, false) == expected);
}

void check_replays(Mover mover, Mover captured_by) {
  CAPTURE(static_cast<int>(captured_by));
  constexpr int kWarmUp = 2;
  constexpr int kSteps = 7;
  Training plain(mover);
  std::vector<std::vector<double>> expected;
  for (int i = 0; i < kSteps; ++i) {
    plain.set_batch(i);
    plain.step();
    expected.push_back(plain.state());
  }
  Training captured(captured_by);
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
  // A saved state counts the replayed steps.
  if (captured_by == Mover::Sgd || captured_by == Mover::UsualSgd) return;
  for (const auto& [name, number] : captured.optimizer->state_dict().numbers) {
    if (name.ends_with(".step")) CHECK(number == kSteps);
  }
}

}  // namespace

TEST_CASE("replays of a captured training step leave the parameters that the steps by themselves leave, to the bit") {
  check_replays(Mover::UsualSgd, Mover::UsualSgd);
  check_replays(Mover::UsualSgd, Mover::Sgd);
  check_replays(Mover::Adam, Mover::Adam);
  check_replays(Mover::UsualAdamW, Mover::AdamW);
}

TEST_CASE("a schedule reaches steps that have been captured where the learning rate is on the device") {
  check_schedule(Mover::UsualSgd, Mover::Sgd);
  check_schedule(Mover::UsualAdamW, Mover::AdamW);
  // A learning rate that the captured step itself would write is rejected.
  Training training(Mover::Sgd);
  training.set_batch(0);
  training.step();
  dynamic_cast<optim::SGD&>(*training.optimizer).options().lr = 0.25;
  cuda::Graph graph;
  CHECK(error_of([&] { graph.capture([&] { training.step(); }); }).find("or change the rate by set_lr()") !=
        std::string::npos);
}

TEST_CASE("a step that a replay cannot do again is not captured: its count is on the host, or it is the first") {
  for (const auto& [mover, warm_up, expected] :
       {std::tuple(Mover::UsualAdamW, 1,
                   "Attempting CUDA graph capture of step() for an instance of AdamW but param_groups' capturable is "
                   "False"),
        {Mover::UsualAdamW, 1, "Set .capturable = true"},
        {Mover::NAdam, 1, "an instance of NAdam but param_groups' capturable is False"},
        {Mover::NAdam, 1, "Capture a step of SGD, or of Adam or AdamW with .capturable = true"},
        {Mover::AdamW, 0, "AdamW.step(): a step that makes state for a parameter"},
        {Mover::Sgd, 0, "SGD.step(): a step that makes state for a parameter"}}) {
    CAPTURE(expected);
    Training training(mover);
    for (int i = 0; i < warm_up; ++i) {
      training.set_batch(i);
      training.step();
    }
    cuda::Graph graph;
    CHECK(error_of([&] { graph.capture([&] { training.step(); }); }).find(expected) != std::string::npos);
  }
}

}  // namespace brigade::test::graph_step_test
