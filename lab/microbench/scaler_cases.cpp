// The cost of a loss scaler: training steps over ten million parameters without a scaler, with one, and with one
// whose steps are fused.
#include <brigade/amp/grad_scaler.h>
#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>
#include <brigade/lab/microbench/micro_case.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>

#include <memory>

namespace brigade::lab {
namespace {

using MakeOptimizer = std::function<std::unique_ptr<optim::Optimizer>(const std::vector<Tensor>&)>;

struct Training {
  amp::GradScaler scaler;
  Tensor x = randn({128, 1024});
  nn::Sequential net{nn::Linear(1024, 2048), nn::ReLU(), nn::Linear(2048, 2048), nn::ReLU(), nn::Linear(2048, 1792)};
  std::unique_ptr<optim::Optimizer> optimizer;

  Training(const MakeOptimizer& make, const amp::GradScalerOptions& options)
      : scaler(options), optimizer(make(net->parameters())) {}

  void gradients() {
    optimizer->zero_grad();
    const Tensor y = net(x);
    scaler.scale((y * y).mean()).backward();
  }
  void step() {
    scaler.step(*optimizer);
    scaler.update();
  }
};

// Both cases of a way share one training, made when the first of them runs.
struct Shared {
  MakeOptimizer make;
  amp::GradScalerOptions options;
  std::weak_ptr<Training> made = {};

  std::shared_ptr<Training> get() {
    std::shared_ptr<Training> training = made.lock();
    if (!training) made = training = std::make_shared<Training>(make, options);
    return training;
  }
};

void add_ways(std::vector<MicroCase>& all, const std::string& optimizer, const MakeOptimizer& make) {
  const std::pair<std::string, amp::GradScalerOptions> ways[] = {
      {"without a scaler", {.enabled = false}}, {"with one", {}}, {"with a fused one", {.fused_step = true}}};
  for (const auto& [words, options] : ways) {
    const auto shared = std::make_shared<Shared>(make, options);
    const auto add = [&](const std::string& what, std::function<double(Training&)> time) {
      const std::string title = "scaler, " + optimizer + " " + what + " ";
      all.push_back({.suite = "amp",
                     .name = title + words,
                     .prepare = [shared, time = std::move(time)]() -> std::function<double()> {
                       return [training = shared->get(), time] { return time(*training); };
                     },
                     .beside = options.enabled ? title + "without a scaler" : ""});
    };
    add("iteration", [](Training& training) {
      return microseconds(1, [&] {
        training.gradients();
        training.step();
      });
    });
    add("step", [](Training& training) {
      training.gradients();
      return microseconds(1, [&] { training.step(); });
    });
  }
}

std::vector<MicroCase> cases() {
  std::vector<MicroCase> all;
  add_ways(all, "SGD", [](const auto& parameters) {
    return std::make_unique<optim::SGD>(parameters, optim::SGDOptions{.lr = 1e-3});
  });
  add_ways(all, "SGD momentum", [](const auto& parameters) {
    return std::make_unique<optim::SGD>(parameters, optim::SGDOptions{.lr = 1e-3, .momentum = 0.9});
  });
  add_ways(all, "AdamW", [](const auto& parameters) {
    return std::make_unique<optim::AdamW>(parameters, optim::AdamWOptions{.lr = 1e-4});
  });
  return all;
}

const AddMicroCases add_scaler_cases(&cases);

}  // namespace
}  // namespace brigade::lab
