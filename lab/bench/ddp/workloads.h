// The networks that `brigade bench ddp` trains, each with a batch and a loss. The first five are
// those that bench/beside_torch.py trains in PyTorch as well.
#pragma once

#include <brigade/nn/nn.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace brigade::lab::bench {

// One type for all of them, so that DistributedDataParallel has one to wrap: a module and what its
// forward is; beside it parameters that no forward uses.
struct NetworkImpl : nn::Module {
  std::function<Tensor(const Tensor& x)> run;
  nn::ParameterList unused{nullptr};

  Tensor forward(const Tensor& x) { return run(x); }
  // Registers the inner module.
  template <class H>
  H inner(H module) {
    return register_module("net", std::move(module));
  }
  // A tenth of the parameters there are, in number (at least one) and in elements.
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
  // Of one rank: other numbers for another seed.
  std::function<Batch(uint64_t seed)> batch;
  std::function<Tensor(const Tensor& y, const Tensor& target)> loss;
};

// mlp, cnn, transformer, many, big, resnet18, gpt.
std::span<const Workload> workloads();
std::vector<std::string> workload_names();
// Throws ValueError that lists them.
const Workload& find_workload(const std::string& name);

}  // namespace brigade::lab::bench
