// The network that the mechanism tests train on several ranks, and in one process for comparison.
#pragma once

#include <brigade/autograd/checkpoint.h>
#include <brigade/autograd/functional.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace brigade::test::mechanisms {

inline constexpr int kSteps = 6;

using Values = std::vector<double>;

// Three layers, the middle one optionally checkpointed; float64, so that the order of sums does not matter much.
struct NetImpl : nn::Module {
  nn::Linear a{nullptr}, b{nullptr}, c{nullptr};
  bool checkpointed = false;
  NetImpl() {
    a = register_module("a", nn::Linear(4, 8));
    b = register_module("b", nn::Linear(8, 8));
    c = register_module("c", nn::Linear(8, 3));
    to(kFloat64);
  }
  Tensor forward(const Tensor& x) {
    const Tensor features = brigade::tanh(a(x));
    if (!checkpointed) return c(brigade::tanh(b(features)));
    return c(autograd::checkpoint([this](const Tensor& in) { return brigade::tanh(b(in)); }, features));
  }
};
BRIGADE_MODULE(Net);

inline Tensor batch_of(int rank, int step, int64_t rows = 6) {
  RandomGenerator generator(1000 + 17 * static_cast<uint64_t>(rank) + 101 * static_cast<uint64_t>(step));
  return randn({rows, 4}, kFloat64, &generator);
}

inline Tensor whole_batch(int ranks, int step, int64_t rows = 6) {
  std::vector<Tensor> parts;
  for (int r = 0; r < ranks; ++r)
    parts.push_back(batch_of(r, step, rows));
  return cat(parts);
}

inline Tensor loss_of(const Tensor& output) { return mean(square(output - 1.0)); }

inline Values values_of(const std::vector<Tensor>& tensors) {
  Values values;
  for (const Tensor& tensor : tensors) {
    for (const double v : tensor.to_vector<double>())
      values.push_back(v);
  }
  return values;
}

inline std::string compare(const Values& found, const Values& expected, double tolerance = 1e-12) {
  if (found.size() != expected.size()) return fmt::format("{} values, expected {}", found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const double bound = tolerance * std::max(1.0, std::abs(expected[i]));
    if (!(std::abs(found[i] - expected[i]) <= bound))
      return fmt::format("value {} is {}, expected {}", i, found[i], expected[i]);
  }
  return "";
}

// One process on the whole batch: SGD with momentum.
inline Values reference(const std::function<void(Net&, optim::Optimizer&, int step)>& step) {
  manual_seed(1);
  Net net;
  optim::SGD optimizer(net->parameters(), {.lr = 0.1, .momentum = 0.9});
  for (int s = 0; s < kSteps; ++s)
    step(net, optimizer, s);
  return values_of(net->parameters());
}

inline Values plain_reference(int ranks) {
  return reference([ranks](Net& net, optim::Optimizer& optimizer, int s) {
    optimizer.zero_grad();
    loss_of(net(whole_batch(ranks, s))).backward();
    optimizer.step();
  });
}

using Ddp = dist::DistributedDataParallel<Net>;

// The usual loop on one rank; `prepare` runs after wrapping.
inline Values train(const dist::ProcessGroupPtr& group, const dist::DDPOptions& options,
                    const std::function<void(Ddp&)>& prepare = {}, bool checkpointed = false) {
  manual_seed(group->rank() == 0 ? 1 : 99);
  Net net;
  net->checkpointed = checkpointed;
  Ddp ddp(net, group, options);
  if (prepare) prepare(ddp);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1, .momentum = 0.9});
  for (int s = 0; s < kSteps; ++s) {
    optimizer.zero_grad();
    loss_of(ddp(batch_of(group->rank(), s))).backward();
    optimizer.step();
  }
  return values_of(net->parameters());
}

}  // namespace brigade::test::mechanisms
