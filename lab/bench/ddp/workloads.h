// The networks that `brigade bench ddp` trains, each with a batch and a loss. bench/beside_torch.py trains the
// first five in PyTorch as well.
#pragma once

#include <brigade/nn/nn.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace brigade::lab::bench {

// One type for all networks, so that DistributedDataParallel has one type to wrap: a module, its forward function,
// and optional parameters that no forward uses.
struct NetworkImpl : nn::Module {
  std::function<Tensor(const Tensor& x)> run;
  nn::ParameterList unused{nullptr};

  Tensor forward(const Tensor& x) { return run(x); }
  // Registers the inner module.
  template <class H>
  H inner(H module) {
    return register_module("net", std::move(module));
  }
  // Adds a tenth of the parameters, both in number (at least one) and in elements.
  void add_unused_tenth();
};
BRIGADE_MODULE(Network);

struct Batch {
  Tensor x, target;
};

struct Workload {
  std::string name;
  std::string about;  // layers and batch, in words
  std::function<Network()> make;
  // The batch of one rank; each seed gives different numbers.
  std::function<Batch(uint64_t seed)> batch;
  std::function<Tensor(const Tensor& y, const Tensor& target)> loss;
};

// mlp, cnn, transformer, many, big, resnet18, gpt.
std::span<const Workload> workloads();
std::vector<std::string> workload_names();
// Throws ValueError that lists them.
const Workload& find_workload(const std::string& name);

}  // namespace brigade::lab::bench
