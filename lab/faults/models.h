// Modules that several faults share.
#pragma once

#include <brigade/autograd/functional.h>
#include <brigade/dist/process_group.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>

namespace brigade::lab {

// Two layers, a and b, without bias.
struct PairImpl : nn::Module {
  nn::Linear a{nullptr}, b{nullptr};
  PairImpl() {
    a = register_module("a", nn::Linear(4, 4, false));
    b = register_module("b", nn::Linear(4, 4, false));
  }
};

// A batch [8, 4] that differs between ranks.
inline Tensor rank_batch(const dist::ProcessGroupPtr& group) {
  Generator generator(100 + static_cast<uint64_t>(group->rank()));
  return randn({8, 4}, kFloat32, &generator);
}

// One optimizer step of plain SGD.
inline void sgd_step(const std::vector<Tensor>& parameters) {
  optim::SGD optimizer(parameters, {.lr = 0.1});
  optimizer.step();
  optimizer.zero_grad();
}

}  // namespace brigade::lab
